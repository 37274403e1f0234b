"""Weights that are put back after steps are reported; averages, masks and resets on purpose are not."""

from dataclasses import replace

import pytest

from tests.rules.builders import check, event, evidence, line, optimizer, parameter
from whygrad.model import Severity

SLUG = "weights-overwritten"
OPTIMIZERS = (optimizer(),)
RESTORED = {"compared": 9, "overwritten": 9, "restored": 9, "undone": 9.0}


def run(*parameters, optimizers=OPTIMIZERS, **fields):
    return check(SLUG, evidence(parameters, optimizers, **fields))


def test_weights_that_are_put_back_after_each_step_are_one_error():
    (finding,) = run(parameter("a", 0, **RESTORED), parameter("b", 1, **RESTORED))

    assert finding.severity is Severity.ERROR
    assert finding.tensors == ("a", "b")
    assert finding.place == line(30)  # the step that is undone
    assert "`optimizer` had moved were put back 9 times, by 100% of the way: `a` (+1) do not learn" in finding.message


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"compared": 9, "overwritten": 9},  # a mask, a projection
        {"compared": 9, "overwritten": 9, "undone": 4.5},  # half of the way: Lookahead
        {"compared": 9, "overwritten": 2, "undone": 2.0, "loads": 2},  # the best weights, taken up again twice
        {"compared": 4, "overwritten": 2, "restored": 2},  # too few to tell
        {"compared": 20, "overwritten": 10, "restored": 10},  # trial steps of which half are kept
        {**RESTORED, "stale": True},
        {**RESTORED, "gradient_steps": 0},
        {**RESTORED, "optimizers": (0, 1)},  # an outer optimizer moves it as well
    ],
)
def test_what_takes_back_less_is_silent(fields):
    assert run(parameter("a", 0, **fields), optimizers=(optimizer(), optimizer(1))) == []


@pytest.mark.parametrize(
    ("written", "code", "expected"),
    [
        ("clamp_", "bound.clamp_(min=0)", 0),
        ("data=", "bound.data = torch.clamp(bound.data, min=0)", 0),
        ("copy_", "bound.copy_(kept)", 1),
    ],
)
def test_a_multiplier_that_is_kept_in_its_range_returns_to_its_bound(written, code, expected):
    events = (event("weight_written", place=line(36, code=code), subject=written, parameter=0),)

    assert len(run(parameter("bound", 0, **RESTORED), events=events)) == expected


def test_a_model_that_loads_its_own_tensors_is_reported_at_that_line_at_a_quarter_of_the_way():
    loaded = parameter("a", 0, compared=30, overwritten=3, undone=0.9, loads=6)
    events = (
        event("weights_loaded", place=line(34), subject="model", count=3),
        event("own_weights_loaded", place=line(37), subject="model", count=3),
    )

    (finding,) = run(loaded, events=events)

    assert (finding.place, finding.also[:1]) == (line(37), (line(34),))
    assert "v.clone()" in finding.fix
    assert "train.py:37" in finding.fix
    assert run(loaded, events=events[:1]) == []


def test_the_line_that_wrote_the_parameter_comes_before_lines_that_wrote_others():
    events = (
        event("weight_written", place=line(50), subject="copy_", parameter=7),
        event("weight_written", place=line(51), subject="copy_", parameter=0),
        event("weight_written", place=line(52), subject="mul_", parameter=0),
    )

    (finding,) = run(parameter("a", 0, **RESTORED), events=events)

    assert finding.place == line(51)
    assert line(52) not in finding.also


def test_weights_that_are_initialised_again_and_again_are_reported():
    again = parameter("a", 0, compared=20, overwritten=5, replaced=5)

    (finding,) = run(again)

    assert "written 5 times, 5 of them by half of their size or more" in finding.message
    assert run(replace(again, overwritten=2, replaced=2)) == []
    assert run(replace(again, replaced=2)) == []


def test_an_optimizer_that_is_put_back_as_well_begins_anew_on_purpose():
    resets = event("optimizer_loaded", place=line(40), subject="optimizer", count=5)

    assert run(parameter("a", 0, **RESTORED), events=(resets,)) == []
    assert len(run(parameter("a", 0, **RESTORED), events=(replace(resets, count=1),))) == 1


def test_a_small_part_that_is_put_back_is_frozen_and_only_an_info():
    (finding,) = run(parameter("bias", 0, shape=(4,), **RESTORED), parameter("weight", 1, compared=9))

    assert finding.severity is Severity.INFO
