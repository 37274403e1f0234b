"""The README shows what whygrad really says, and only commands that exist."""

from __future__ import annotations

import re

import pytest

from docs import capture
from whygrad.cli import main

README = capture.README.read_text(encoding="utf-8")


def test_the_diagnosis_is_what_whygrad_says_today():
    assert capture.scrub(capture.captured(README)) == capture.scrub(capture.diagnosis()), "run `make docs`"


def test_two_runs_differ_only_in_what_is_scrubbed():
    one = (
        "200 steps (50 recorded), overhead 1.8%, 3 of 9 parameters\nsaved .whygrad/a-20261130T071200Z-4242\ntook 2.5 s"
    )
    other = "200 steps (9 recorded), overhead 12%, 3 of 9 parameters\nsaved .whygrad/a-20271130T071200Z-1\ntook 31 s"

    assert capture.scrub(one) == capture.scrub(other)
    assert capture.scrub(one) != capture.scrub(other.replace("3 of 9", "4 of 9"))


@pytest.mark.parametrize(
    "command",
    sorted(set(re.findall(r"\bwhygrad (?!took\b)([a-z]+)\b", "".join(re.findall(r"`+[^`]+`+", README))))),
)
def test_every_command_it_names_exists(command, capsys):
    with pytest.raises(SystemExit) as stop:
        main([command, "--help"])

    assert stop.value.code == 0
    assert command in capsys.readouterr().out


def test_it_tells_in_the_order_in_which_a_stranger_asks():
    headings = re.findall(r"^## (.*)$", README, flags=re.MULTILINE)

    assert headings == ["Two commands", "What it shows", "What it finds", "What it costs", "What it cannot see", "More"]
    assert README.index("<!-- generated: diagnosis") < README.index("## Two commands")
