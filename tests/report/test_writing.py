import math
import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from whygrad.report.writing import clipped, number, paint, plural, printable, short_path, times, wrapped


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (3.0, "3"),
        (0.000123456, "0.000123"),
        (1.23456e-9, "1.23e-09"),
        (123456.0, "123456"),
        (1e30, "1e+30"),
        (math.nan, "NaN"),
        (math.inf, "inf"),
        (-math.inf, "-inf"),
        (200, "200"),
        (True, "yes"),
        (False, "no"),
        (None, "None"),
    ],
)
def test_numbers_are_short(value, text):
    assert text == number(value)


@pytest.mark.parametrize(
    ("ratio", "text"),
    [(1.04, "1.0"), (2.5, "2.5"), (9.94, "9.9"), (123.7, "124"), (52000.0, "52,000"), (3.14e9, "3.1e+09")],
)
def test_ratios_are_said_as_people_say_them(ratio, text):
    assert text == times(ratio)


def test_infinite_ratio_is_no_number():
    assert "infinitely many" == times(math.inf)


def test_plural_follows_the_count():
    assert "1 step" == plural(1, "step")
    assert "0 steps" == plural(0, "step")
    assert "2 passes" == plural(2, "pass", "passes")


def test_printable_escapes_what_a_terminal_acts_on():
    assert r"a\x1b[2Jb\r\u202e" == printable("a\x1b[2Jb\r\u202e")


def test_printable_keeps_letters_of_every_script_and_expands_tabs():
    assert "    größe 幅" == printable("\tgröße 幅")


@settings(deadline=None)
@given(st.text())
def test_printable_text_is_printable_and_encodable(text):
    safe = printable(text)

    assert safe.isprintable()
    safe.encode("utf-8")
    assert safe == printable(safe)


def test_paint_without_colour_changes_nothing():
    assert "text" == paint("text", "error", color=False)
    assert "\x1b[1;31mtext\x1b[0m" == paint("text", "error", color=True)


def test_wrapped_lines_keep_to_the_width_and_never_break_a_name():
    name = "`" + "x" * 100 + "`"
    lines = wrapped(f"the tensor {name} is far too long for one line of this width", 40, first="- ", rest="  ")

    assert any(name in line for line in lines)
    assert all(len(line) <= 40 for line in lines if name not in line)
    assert lines[0].startswith("- ")
    assert all(line.startswith("  ") for line in lines[1:])


@settings(deadline=None)
@given(st.text(), st.integers(4, 40))
def test_clipped_text_fits_and_keeps_both_ends(text, width):
    short = clipped(text, width)

    assert len(short) <= width
    assert short == text or (text.startswith(short.split("..")[0]) and text.endswith(short[-1]))


def test_paths_are_relative_where_that_is_shorter(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    assert "train.py" == short_path(tmp_path / "train.py")
    assert "train.py" == short_path("train.py")
    assert "/a.py" == short_path("/a.py")


def test_paths_stay_as_they_are_where_the_working_directory_is_gone(tmp_path, monkeypatch):
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    try:
        assert "/somewhere/train.py" == short_path(Path("/somewhere/train.py"))
    finally:
        os.chdir(tmp_path)
