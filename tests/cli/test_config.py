from __future__ import annotations

from pathlib import Path

import pytest

from tests.report.builders import finding
from whygrad.config import Color, Config, FailOn, OutputFormat, load, nearest
from whygrad.errors import WhygradError
from whygrad.model import Severity


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    inner = tmp_path / "project" / "src"
    inner.mkdir(parents=True)
    (tmp_path / "project" / "whygrad.toml").touch()  # nothing outside of this test's folder is looked at
    return inner


def write(folder: Path, text: str, name: str = "whygrad.toml") -> None:
    (folder / name).write_text(text, encoding="utf-8")


def test_without_any_setting_the_defaults_hold(folder: Path) -> None:
    assert Config() == load(folder, {}, {})


def test_all_keys_of_a_file_are_read(folder: Path) -> None:
    write(
        folder.parent,
        'every = 10\noverhead = 0.5\nmax-size = 64\nfail-on = "info"\ncolor = "never"\n'
        'output-format = "json"\nquiet = true',
    )

    expected = Config(10, 0.5, 64.0, FailOn.INFO, Color.NEVER, OutputFormat.JSON, quiet=True)
    assert expected == load(folder, {}, {})


def test_the_later_wins(folder: Path) -> None:
    write(folder.parent, 'every = 10\ncolor = "never"\noverhead = 0.1')

    config = load(folder, {"WHYGRAD_EVERY": "20", "WHYGRAD_COLOR": "always"}, {"every": "auto", "color": None})

    assert Config(every=None, color=Color.ALWAYS, overhead=0.1) == config


def test_the_nearest_file_is_read(folder: Path) -> None:
    write(folder.parent, "every = 10")
    write(folder, "[tool.whygrad]\nevery = 20", "pyproject.toml")

    assert 20 == load(folder, {}, {}).every
    assert 10 == load(folder.parent, {}, {}).every


def test_a_pyproject_without_a_table_for_whygrad_is_passed_over(folder: Path) -> None:
    write(folder.parent, "every = 10")
    write(folder, "[tool.other]\nx = 1", "pyproject.toml")

    assert 10 == load(folder, {}, {}).every


def test_its_own_file_comes_before_pyproject(folder: Path) -> None:
    write(folder, "every = 10")
    write(folder, "[tool.whygrad]\nevery = 20", "pyproject.toml")

    assert 10 == load(folder, {}, {}).every


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("evry = 1", "unknown key `evry` for whygrad: did you mean `every`?"),
        ("fail_on = 'error'", "unknown key `fail_on` for whygrad: did you mean `fail-on`?"),
        ("zzz = 1", "known are color, every, fail-on, max-size, output-format, overhead, quiet"),
        ("[rules]\nx = 1", "unknown key `rules`"),
        ("every = 0", 'is 0; it has to be a whole number of steps from 1 on, or "auto"'),
        ("every = 1.5", "`every` in "),
        ("every = true", "is True;"),
        ("every = [1]", "is [1];"),
        ("overhead = 0", "is 0; it has to be a share of the run's time, above 0 and up to 1"),
        ("overhead = 1.01", "is 1.01;"),
        ("overhead = nan", "is nan;"),
        ("overhead = '2%'", "is '2%';"),
        ("max-size = 15.9", "is 15.9; it has to be a number of MB from 16 on"),
        ("max-size = inf", "is inf;"),
        ("max-size = '1 GB'", "is '1 GB';"),
        ("color = 'blue'", "is 'blue'; it has to be one of auto, always, never"),
        ("color = ['auto']", "is ['auto'];"),
        ("fail-on = 'errors'", "it has to be one of error, warning, info, never"),
        ("quiet = 'perhaps'", "it has to be true or false"),
        ("every = ", "cannot be read as TOML"),
        ("\udcff", "cannot be read as TOML"),
    ],
)  # fmt: skip
def test_a_setting_that_is_none_is_one_sentence(folder: Path, text: str, sentence: str) -> None:
    (folder / "whygrad.toml").write_bytes(text.encode("utf-8", "surrogateescape"))

    with pytest.raises(WhygradError) as raised:
        load(folder, {}, {})

    assert sentence in str(raised.value)
    assert str(folder / "whygrad.toml") in str(raised.value)


def test_the_environment_and_the_flags_are_named_in_complaints(folder: Path) -> None:
    with pytest.raises(WhygradError, match=r"^WHYGRAD_EVERY is 'x'; "):
        load(folder, {"WHYGRAD_EVERY": "x"}, {})
    with pytest.raises(WhygradError, match=r"^--fail-on is 'x'; "):
        load(folder, {}, {"fail_on": "x"})
    with pytest.raises(
        WhygradError, match=r"^unknown environment variable WHYGRAD_EVRY: did you mean `WHYGRAD_EVERY`\?"
    ):
        load(folder, {"WHYGRAD_EVRY": "1"}, {})


def test_switches_of_the_launcher_are_no_settings(folder: Path) -> None:
    assert Config() == load(folder, {"WHYGRAD_DEBUG": "1", "WHYGRAD_LAUNCHER": "runner", "HOME": "/root"}, {})


@pytest.mark.parametrize(
    ("color", "environ", "is_terminal", "expected"),
    [
        (Color.ALWAYS, {"NO_COLOR": "1"}, False, True),
        (Color.NEVER, {"FORCE_COLOR": "1"}, True, False),
        (Color.AUTO, {}, True, True),
        (Color.AUTO, {}, False, False),
        (Color.AUTO, {"NO_COLOR": "1", "FORCE_COLOR": "1"}, True, False),
        (Color.AUTO, {"NO_COLOR": ""}, True, True),
        (Color.AUTO, {"FORCE_COLOR": "1"}, False, True),
        (Color.AUTO, {"TERM": "dumb"}, True, False),
    ],
)
def test_when_to_write_colours(color: Color, environ: dict[str, str], is_terminal: bool, expected: bool) -> None:
    assert expected is color.applies(environ, is_terminal=is_terminal)


@pytest.mark.parametrize(
    ("level", "severity", "expected"),
    [
        (FailOn.ERROR, Severity.ERROR, True),
        (FailOn.ERROR, Severity.WARNING, False),
        (FailOn.WARNING, Severity.ERROR, True),
        (FailOn.WARNING, Severity.INFO, False),
        (FailOn.INFO, Severity.INFO, True),
        (FailOn.NEVER, Severity.ERROR, False),
    ],
)
def test_from_which_level_on_a_finding_fails(level: FailOn, severity: Severity, expected: bool) -> None:
    assert expected is level.reached_by([finding(severity=severity)])
    assert not level.reached_by([])


def test_every_severity_is_a_level() -> None:
    assert set(Severity) == set(FailOn) - {"never"}


def test_a_word_that_is_like_no_other_gets_the_whole_choice() -> None:
    assert ": did you mean `report`?" == nearest("reprot", ["run", "report"])
    assert ": known are report, run" == nearest("xyz", ["run", "report"])
