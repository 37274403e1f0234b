from __future__ import annotations

import os
import subprocess
import sys

import pytest

import whygrad
from tests.runfile.samples import write_sample
from whygrad.cli import COMMANDS, main


def test_help_names_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert 0 == main(["--help"])

    shown = capsys.readouterr().out
    assert all(f"\n  {command} " in shown for command in COMMANDS)
    assert 0 == main([])
    assert shown == capsys.readouterr().out


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_that_fits_a_terminal(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([command, "--help"])

    shown = capsys.readouterr().out
    assert 0 == ended.value.code
    assert shown.startswith(f"usage: whygrad {command} ")
    assert max(map(len, shown.splitlines())) <= 120


def test_the_version_is_that_of_the_package(capsys: pytest.CaptureFixture[str]) -> None:
    assert 0 == main(["--version"])
    assert f"whygrad {whygrad.__version__}\n" == capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["reprot"], "whygrad: there is no command `reprot`: did you mean `report`?\n"),
        (["--verbose"], "whygrad: there is no option `--verbose` (see whygrad --help)\n"),
        (["train.py"], "whygrad: there is no command `train.py`: did you mean `whygrad run train.py`?\n"),
        (["report", "--formt"], "whygrad: unknown argument `--formt`: "),
        (["report", "--output-fromat", "json"], "did you mean `--output-format`? (see whygrad report --help)\n"),
        (["report", "--out", "x"], "whygrad: unknown argument `--out`: did you mean `--output`?"),
        (["report", "a", "b"], "whygrad: unknown argument `b` (see whygrad report --help)\n"),
        (["report", "--output"], "whygrad: argument -o/--output: expected one argument"),
        (["report", "nowhere"], "whygrad: `nowhere` does not exist"),
        (["report", "--output-format", "xml", "."], "whygrad: --output-format is 'xml'; it has to be one of"),
        (["compare", "a"], "whygrad: the following arguments are required: B"),
        (["rule", "dead-rule"], "whygrad: there is no rule `dead-rule`"),
        (["run"], "whygrad: name the file to run, as in `whygrad run train.py`\n"),
        (["run", "-m"], "whygrad: name the module to run"),
        (["run", "-m", "-c", "x"], "whygrad: -m and -c exclude each other\n"),
        (["run", "--jsn", "x", "train.py"], "whygrad: unknown argument `--jsn`: did you mean `--json`?"),
        (["run", "missing.py"], "whygrad: there is no file `missing.py`"),
        (["run", "--every", "0", "missing.py"], "whygrad: --every is '0'; it has to be a whole number"),
        (["demo", "--depth", "0"], "whygrad: argument --depth: `0` is no whole number from 1 on"),
        (["demo", "--activation", "relu"], "whygrad: argument --activation: expected 2 arguments"),
        (["demo", "--activation", "relu", "sigmoyd"], "there is no activation `sigmoyd` here: did you mean `sigmoid`?"),
    ],
)  # fmt: skip
def test_bad_input_is_one_sentence_and_status_2(
    words: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert 2 == main(words)

    shown = capsys.readouterr()
    assert sentence in shown.err
    assert shown.err.startswith("whygrad: ")
    assert 1 == shown.err.count("\n")
    assert "" == shown.out


def test_an_error_of_ours_is_one_sentence_too(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("whygrad.cli.rule.all_rules", lambda: {}["broken"])
    monkeypatch.delenv("WHYGRAD_DEBUG", raising=False)

    assert 2 == main(["rule"])
    assert "whygrad: internal error: KeyError: 'broken' (WHYGRAD_DEBUG=1 shows where)\n" == capsys.readouterr().err

    monkeypatch.setenv("WHYGRAD_DEBUG", "1")
    with pytest.raises(KeyError):
        main(["rule"])


def test_an_interrupt_is_status_130(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("whygrad.cli.rule.all_rules", interrupted)

    assert 130 == main(["rule"])


def test_a_reader_that_leaves_is_no_error(tmp_path) -> None:
    write_sample(tmp_path / "run" / "rank0.whygrad")
    reader, writer = os.pipe()
    os.close(reader)

    with subprocess.Popen(
        [sys.executable, "-m", "whygrad", "report", str(tmp_path / "run")], stdout=writer, stderr=subprocess.PIPE
    ) as process:
        os.close(writer)
        _, stderr = process.communicate(timeout=60)

    assert (b"", 0) == (stderr, process.returncode)
