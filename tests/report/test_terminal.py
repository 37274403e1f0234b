import re

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.report.builders import EXCERPT, Shown, evidence, finding, place
from tests.report.goldens import assert_golden
from whygrad.model import Raised, Severity
from whygrad.report.terminal import render

ERROR, WARNING, INFO = Severity
ESCAPES = re.compile(r"\x1b\[[0-9;]*m")
LAYERS = [f"encoder.layers.{i}.{part}" for i in range(12) for part in ("attn.q.weight", "attn.q.bias", "mlp.weight")]


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def sick(path=None):
    """Return a run with all that a verdict can show."""
    found = (
        finding(
            "unused-parameter",
            tensors=["head.weight", "head.bias"],
            message="`head.weight` (+1) got no gradient in any of 200 steps: forward() never uses `head`",
            fix="use `head` in forward(), or delete it",
            place=place(41, function="__init__", code=EXCERPT[1][1].strip(), excerpt=EXCERPT),
            evidence={"steps": 200, "gradient_steps": 0, "share": 0.03846, "optimizers": ["adam"], "used": False},
            also=tuple(place(line) for line in range(50, 56)),
            consequences=(
                finding("zero-gradient", tensors=["head.weight"]),
                finding("no-step"),
                finding("saturated-activation", WARNING, tensors=["head.relu", "head.tanh"]),
            ),
        ),
        finding(
            "vanishing-gradient",
            WARNING,
            tensors=[name for name in LAYERS if ".attn." in name],
            message="the gradient of `encoder.layers.0.attn.q.weight` is 52,000 times smaller than that of "
            "`encoder.layers.11.attn.q.weight`",
            fix="normalise between the layers, or use ReLU",
            evidence={"ratio": 52000.0, "first": 1.234e-9, "worst": float("inf")},
        ),
        finding("frozen-parameter", INFO, tensors=["stem.weight"], message="`stem.weight` is frozen", place=place(12)),
    )
    facts = evidence(
        *LAYERS, "head.weight", "head.bias", "stem.weight", steps=200, recorded_steps=50, duration_s=10.0, own_s=0.18
    )
    return Shown((facts,), found, ("12 parameters live in a compiled region: their outputs were not seen",), path)


def test_verdict_of_a_sick_run(tmp_path):
    assert_golden(render(sick(tmp_path / ".whygrad" / "train-1"), color=False, width=80), "sick.txt")


def test_verdict_in_colour(tmp_path):
    assert_golden(render(sick(tmp_path / ".whygrad" / "train-1"), color=True, width=80), "sick-color.txt")


def test_verdict_on_a_wide_terminal():
    assert_golden(render(sick(), color=False, width=140), "sick-wide.txt")


def test_verdict_of_a_healthy_run(tmp_path):
    run = Shown((evidence("0.weight", "0.bias"),), path=tmp_path / ".whygrad" / "train-1")

    assert_golden(render(run, color=False, width=80), "healthy.txt")


def test_verdict_of_only_infos():
    found = finding("frozen-parameter", INFO, tensors=["0.bias"], message="`0.bias` is frozen", place=place(3))

    assert_golden(render(Shown((evidence("0.weight", "0.bias"),), (found,)), color=False, width=80), "infos.txt")


def test_verdict_where_nothing_trained():
    assert_golden(render(Shown((evidence(steps=0, backwards=0),)), color=False, width=80), "untrained.txt")


def test_verdict_of_a_program_that_raised():
    raised = Raised("RuntimeError", "a leaf Variable that requires grad is being used in an in-place operation.\n")
    found = finding(
        "overwritten-inplace", tensors=["h"], message="`h` was changed in place", place=place(7, code="h += 1")
    )
    run = Shown((evidence("0.weight", steps=0, backwards=1, raised=raised),), (found,))

    assert_golden(render(run, color=False, width=80), "raised.txt")


def test_verdict_of_several_ranks():
    run = Shown(tuple(evidence("0.weight", rank=rank, world_size=4) for rank in range(4)))

    assert "10 steps (10 recorded), 4 ranks\n" in render(run, color=False, width=80)


def test_colours_change_no_word():
    assert render(sick(), color=False, width=80) == ESCAPES.sub("", render(sick(), color=True, width=80))


def test_text_without_colour_is_ascii():
    assert render(sick(), color=False, width=80).isascii()


def test_lines_keep_to_the_width():
    assert max(map(len, render(sick(), color=False, width=80).splitlines())) <= 80


def test_whole_model_is_said_in_a_word():
    names = ["0.weight", "0.bias"]

    text = render(Shown((evidence(*names),), (finding(tensors=names),)), color=False, width=80)

    assert "  tensors: all 2 parameters\n" in text


def test_tensor_that_the_message_names_is_not_repeated():
    found = finding(tensors=["0.bias"], message="`0.bias` got no gradient")

    assert "tensors:" not in render(Shown((evidence("0.weight", "0.bias"),), (found,)), color=False, width=80)


def test_many_findings_are_cut_to_their_first_line():
    found = tuple(finding(f"rule-{i}", place=place(i + 1, code="x = 1"), fix=f"cure {i}") for i in range(30))

    text = render(Shown((evidence("0.weight"),), found), color=False, width=80)

    assert "cure 9" in text
    assert "cure 10" not in text
    assert all(f"error rule-{i}:" in text for i in range(30))


def test_many_groups_are_counted():
    names = [f"{letter}.weight" for letter in "abcdefghij"]
    universe = [*names, *(f"{letter}.bias" for letter in "abcdefghij")]

    text = render(Shown((evidence(*universe),), (finding(tensors=names),)), color=False, width=80)

    assert "f.weight, and 4\n           more (10 parameters)\n" in text


def test_long_source_lines_are_cut():
    code = "x = " + " + ".join(["y"] * 100)

    text = render(Shown((evidence(),), (finding(place=place(code=code)),)), color=False, width=80)

    assert max(map(len, text.splitlines())) == 80


def test_place_without_source_shows_the_place_alone():
    text = render(Shown((evidence(),), (finding(place=place(7)),)), color=False, width=80)

    assert "  --> train.py:7\n  numbers:" in text


@pytest.mark.parametrize("color", [False, True])
def test_hostile_names_are_shown_as_they_are_and_do_nothing(color):
    hostile = "[red]evil[/red].\x1b[2J\x1b]0;title\x07.{0}.%s.\u202eweight"
    bad = place(1, file="/tmp/\x1b[31m.py", function="\x1b[0m", code="a = '\x1b[2J'\r", excerpt=())
    found = finding(tensors=[hostile, "b"], message=f"`{hostile}`\n got \x1b no", fix="\x1b[1m", place=bad, also=(bad,))
    run = Shown((evidence(hostile, "b", "c"),), (found,), ("\x1b[5m",))

    text = ESCAPES.sub("", render(run, color=color, width=200))

    assert "[red]evil[/red]" in text
    assert "\x1b" not in text
    assert all(line.isprintable() for line in text.splitlines())


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=50, deadline=None)
@given(name=st.text(), message=st.text(), code=st.text(), width=st.integers(1, 200), color=st.booleans())
def test_no_text_breaks_the_verdict(name, message, code, width, color):
    found = finding(tensors=[name, "x"], message=message, fix=message, place=place(code=code, file=name or "a"))

    text = render(Shown((evidence(name, "x", "y"),), (found,), (message,)), color=color, width=width)

    assert text.endswith("\n")
    assert all(line.isprintable() for line in ESCAPES.sub("", text).split("\n"))
