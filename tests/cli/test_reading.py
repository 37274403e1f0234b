"""The commands that read run files: report, compare, rule."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.report.builders import Shown, a_rule, finding, info, parameters, place
from tests.runfile.samples import write_sample
from whygrad.cli import main
from whygrad.evidence import Evidence
from whygrad.model import Severity
from whygrad.rules import all_rules


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


@pytest.fixture
def show(monkeypatch: pytest.MonkeyPatch):
    def shown(severity: Severity) -> None:
        evidence = Evidence(info(), parameters=parameters("head.weight"))
        run = Shown((evidence,), (finding(severity=severity, tensors=["head.weight"], place=place()),))
        monkeypatch.setattr("whygrad.cli.report.load", lambda _: run)

    return shown


@pytest.mark.parametrize(
    ("severity", "words", "status"),
    [
        (Severity.ERROR, [], 1),
        (Severity.WARNING, [], 0),
        (Severity.WARNING, ["--fail-on", "warning"], 1),
        (Severity.INFO, ["--fail-on", "info"], 1),
        (Severity.ERROR, ["--fail-on", "never"], 0),
    ],
)
def test_a_report_ends_with_1_where_a_finding_reaches_the_level(
    show, severity: Severity, words: list[str], status: int, capsys: pytest.CaptureFixture[str]
) -> None:
    show(severity)

    assert status == main(["report", *words])
    assert f"{severity} unused-parameter" in capsys.readouterr().out


def test_the_level_may_come_from_the_environment(show, monkeypatch: pytest.MonkeyPatch) -> None:
    show(Severity.WARNING)
    monkeypatch.setenv("WHYGRAD_FAIL_ON", "warning")

    assert 1 == main(["report"])


def test_a_report_is_plain_where_nobody_looks(show, capsys: pytest.CaptureFixture[str]) -> None:
    show(Severity.ERROR)

    main(["report"])
    assert "\x1b" not in capsys.readouterr().out
    main(["report", "--color", "always"])
    assert "\x1b[" in capsys.readouterr().out


def test_a_report_may_go_to_a_file(show, here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    show(Severity.ERROR)

    assert 1 == main(["report", "--output-format", "json", "--output", "out.json"])

    assert "" == capsys.readouterr().out
    [written] = json.loads((here / "out.json").read_text())["findings"]
    assert ("unused-parameter", "error", "train.py", 41) == tuple(
        written[key] for key in ("rule", "severity", "file", "line")
    )


def test_a_report_in_a_file_has_no_colours(show, here: Path) -> None:
    show(Severity.ERROR)

    main(["report", "--color", "always", "--output", "out.txt"])

    assert "\x1b" not in (here / "out.txt").read_text()


def test_a_report_that_cannot_be_written_is_status_2(show, capsys: pytest.CaptureFixture[str]) -> None:
    show(Severity.ERROR)

    assert 2 == main(["report", "--output", "nowhere/out.txt"])
    assert "whygrad: `nowhere/out.txt` cannot be written: No such file or directory\n" == capsys.readouterr().err


def test_the_newest_run_is_reported(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("train-20261130T071200-2", "train-20261130T071159-3"):
        write_sample(here / ".whygrad" / name / "rank0.whygrad")

    main(["report"])

    assert "train-20261130T071200-2" in capsys.readouterr().out


@pytest.mark.parametrize("content", [b"", b"SQLite format 3\0", b"something else"])
@pytest.mark.parametrize("command", [["report"], ["compare", "run.whygrad"]])
def test_a_file_that_is_no_run_is_one_sentence(
    here: Path, content: bytes, command: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "run.whygrad").write_bytes(content)

    assert 2 == main([*command, "run.whygrad"])

    complaint = capsys.readouterr().err
    assert complaint.startswith("whygrad: `run.whygrad` ")
    assert 1 == complaint.count("\n")


def test_where_there_is_no_run_one_is_told_how_to_make_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert 2 == main(["report"])
    assert "whygrad run" in capsys.readouterr().err


def test_reading_commands_never_import_torch(here: Path) -> None:
    write_sample(here / "run" / "rank0.whygrad")
    reading = (["report", "run"], ["report", "--output-format", "json", "run"], ["html", "run"])
    commands = (*reading, ["compare", "run", "run"], ["rule"])
    program = f"""
import sys
from whygrad.cli import main
for words in {commands!r}:
    main(words)
assert "torch" not in sys.modules, "torch"
assert "rich" not in sys.modules, "rich"
"""

    subprocess.run([sys.executable, "-c", program], check=True, stdout=subprocess.DEVNULL, cwd=here)


def test_a_comparison_shows_what_only_b_has(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("a", "b"):
        write_sample(here / name / "rank0.whygrad")

    assert 0 == main(["compare", "a", "b"])
    assert "`b.weight`" in capsys.readouterr().out


@pytest.mark.parametrize(("level", "status"), [("error", 1), ("never", 0)])
def test_a_comparison_fails_on_new_findings(
    here: Path, monkeypatch: pytest.MonkeyPatch, level: str, status: int
) -> None:
    for name in ("a", "b"):
        write_sample(here / name / "rank0.whygrad")
    found = iter([(), (finding(),)])
    rule = {"x": a_rule("x", check=lambda _: next(found))}
    monkeypatch.setattr("whygrad.run.all_rules", lambda: rule)

    assert status == main(["compare", "--fail-on", level, "a", "b"])


def test_rules_are_listed_with_their_titles(capsys: pytest.CaptureFixture[str]) -> None:
    assert 0 == main(["rule"])

    lines = capsys.readouterr().out.splitlines()
    assert list(all_rules()) == [line.split()[0] for line in lines]
    assert all(line.endswith(rule.title) for line, rule in zip(lines, all_rules().values(), strict=True))


@pytest.mark.parametrize("slug", all_rules())
def test_a_rules_page_is_printed_as_it_is_written(slug: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert 0 == main(["rule", slug])

    shown = capsys.readouterr().out
    assert shown.startswith(f"# {slug}\n\n{all_rules()[slug].title}. ")
    assert all_rules()[slug].page in shown


def test_all_pages_can_be_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert 0 == main(["rule", "--all"])

    shown = capsys.readouterr().out
    assert all(f"# {slug}\n" in shown for slug in all_rules())


def test_a_page_is_set_for_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    slug = next(iter(all_rules()))

    assert 0 == main(["rule", "--color", "always", slug])

    shown = capsys.readouterr().out
    assert "\x1b[" in shown
    assert "## What it looks for" not in shown


def test_a_rule_that_is_misspelt_names_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    slug = next(iter(all_rules()))

    assert 2 == main(["rule", slug.replace("-", "_") + "s"])
    assert f"did you mean `{slug}`?" in capsys.readouterr().err


def test_the_module_and_the_command_are_the_same(here: Path) -> None:
    script = Path(sys.executable).with_name("whygrad")
    if not script.exists():
        pytest.skip("whygrad is not installed as a command")

    env = os.environ | {"NO_COLOR": "1"}
    shown = [
        subprocess.run([*words, "rule"], env=env, cwd=here, stdout=-1, check=True).stdout
        for words in ([str(script)], [sys.executable, "-m", "whygrad"])
    ]

    assert shown[0] == shown[1]
