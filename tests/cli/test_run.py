"""What `whygrad run` makes of its command line; what running it does is tested in tests/launch."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path

import pytest

from whygrad.cli import main
from whygrad.cli import run as command
from whygrad.config import Color, FailOn
from whygrad.errors import WhygradError
from whygrad.launch.options import RunOptions
from whygrad.launch.target import Kind, Target


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "train.py").touch()
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("RANK", raising=False)
    return tmp_path


def read(*words: str) -> tuple[Target, RunOptions]:
    started = command.main(list(words))
    assert isinstance(started, partial)
    return started.args


@pytest.mark.parametrize(
    ("words", "target"),
    [
        (["train.py"], Target(Kind.FILE, "train.py")),
        (["train.py", "-q", "--json", "x", "-m"], Target(Kind.FILE, "train.py", ("-q", "--json", "x", "-m"))),
        (["train.py", "--", "--help"], Target(Kind.FILE, "train.py", ("--", "--help"))),
        (["train.py", "--lr=1", "-1", ""], Target(Kind.FILE, "train.py", ("--lr=1", "-1", ""))),
        (["-q", "train.py", "-q"], Target(Kind.FILE, "train.py", ("-q",))),
        (["--", "train.py", "-q"], Target(Kind.FILE, "train.py", ("-q",))),
        (["-m", "train", "-m", "--json"], Target(Kind.MODULE, "train", ("-m", "--json"))),
        (["-qm", "train", "x"], Target(Kind.MODULE, "train", ("x",))),
        (["-c", "import x; print(-1)", "-c"], Target(Kind.CODE, "import x; print(-1)", ("-c",))),
        (["-c", "", "x"], Target(Kind.CODE, "", ("x",))),
    ],
)
def test_all_that_follows_the_program_belongs_to_it(words: list[str], target: Target) -> None:
    found, options = read(*words)

    assert target == found
    assert len(target.args) == options.num_args


def test_options_are_taken_in(here: Path) -> None:
    paths, shares = ("--json", "out.json", "-q", "-o", "run"), ("--every", "3", "--overhead", "0.1", "--max-size", "50")

    _, options = read(*paths, *shares, "--fail-on", "warning", "--color", "never", "train.py")

    assert options == RunOptions(
        script="train.py",
        num_args=0,
        cwd=str(here),
        folder=str(here / "run"),
        is_folder_chosen=True,
        json=str(here / "out.json"),
        quiet=True,
        every=3,
        overhead=0.1,
        max_size=50.0,
        fail_on=FailOn.WARNING,
        color=Color.NEVER,
    )


def test_without_options_nothing_is_written_before_the_program_starts(here: Path) -> None:
    _, options = read("train.py")

    assert ["train.py"] == [entry.name for entry in here.iterdir()]
    assert Path(options.folder).parent == here / ".whygrad"
    assert Path(options.folder).name.startswith("train-")
    assert (None, False, None, 0.02, FailOn.NEVER) == (
        options.json, options.quiet, options.every, options.overhead, options.fail_on
    )  # fmt: skip


def test_without_torch_one_is_told_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)

    with pytest.raises(WhygradError, match=r'^torch is not installed here: .* `pip install "whygrad\[torch\]"`$'):
        read("train.py")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--json", "nowhere/out.json", "train.py"], "`nowhere/out.json` cannot be written: No such file or directory"),
        (["--json", ".", "train.py"], "cannot be written: Is a directory"),
        (["--json", "train.py/x", "train.py"], "cannot be written: Not a directory"),
        (["-o", "train.py", "train.py"], "`train.py` cannot be made: File exists"),
        (["-o", "train.py/x", "train.py"], "`train.py/x` cannot be made: Not a directory"),
        (["-o", "full", "train.py"], "`full` holds a run already: name another folder"),
    ],
)
def test_a_place_that_cannot_be_written_is_said_before_the_program_starts(
    here: Path, words: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "full").mkdir()
    (here / "full" / "rank0.whygrad").touch()

    assert 2 == main(["run", *words])
    assert sentence in capsys.readouterr().err
    assert "train.py" in [entry.name for entry in here.iterdir()]


def test_an_older_findings_file_is_taken_away_and_a_link_to_it_kept(here: Path) -> None:
    (here / "real.json").write_text("{}")
    (here / "out.json").symlink_to("real.json")

    read("--json", "out.json", "train.py")

    assert not (here / "real.json").exists()
    assert (here / "out.json").is_symlink()


def test_only_rank_0_touches_the_findings_file(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (here / "out.json").write_text("{}")
    monkeypatch.setenv("RANK", "1")

    read("--json", "out.json", "train.py")

    assert (here / "out.json").exists()


def test_every_rank_has_its_file_in_a_chosen_folder(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (here / "run").mkdir()
    (here / "run" / "rank0.whygrad").touch()
    monkeypatch.setenv("RANK", "1")

    read("-o", "run", "train.py")


def test_reading_the_command_line_does_not_import_torch() -> None:
    import subprocess

    program = "import sys; from whygrad.cli import run; run.main(['-c', '']); print('torch' in sys.modules)"

    assert "False\n" == subprocess.run([sys.executable, "-c", program], stdout=-1, text=True, check=True).stdout
