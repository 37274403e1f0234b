"""Clipping at the wrong point, to almost nothing, or of nothing at all."""

import math

import pytest

from tests.rules.builders import check, line, optimizer, outsider, parameter
from tests.rules.loop_builders import backward, clear, clip, did, loop, sized, step
from whygrad.model import Event, Raised, RunInfo, Severity

SCALED = [clear(), backward(marks=["scaled"]), did("clip", 20), did("unscale", 12), step()]


def misplaced(happenings, *clips, count=10):
    return check("clip-misplaced", loop((count, happenings), clips=clips or (clip(),)))


def test_clipping_before_the_scale_is_gone_is_an_error():
    (finding,) = misplaced(SCALED, clip(scale=65536.0))

    assert finding.severity is Severity.ERROR
    assert finding.place == line(20)
    assert "loss scale 6.55e+04" in finding.message
    assert "unscale_" in finding.fix


@pytest.mark.parametrize(
    ("happenings", "point"),
    [
        ([did("clip", 20), clear(), backward(), step()], "after"),
        ([clear(), did("clip", 20), backward(), step()], "before"),
    ],
)
def test_clipping_what_is_not_fresh_is_a_warning(happenings, point):
    (finding,) = misplaced(happenings)

    assert finding.severity is Severity.WARNING
    assert finding.evidence["point"] == point


@pytest.mark.parametrize(
    ("happenings", "line_of_it"),
    [
        ([clear(), backward(), did("clip", 20), step()], clip()),
        ([clear(), backward(marks=["scaled"]), did("unscale", 9), did("clip", 20), step()], clip()),
        (SCALED, clip(scale=8.0)),  # the limit seems to be scaled as well
        ([did("clip", 20), clear(), backward(), step()], clip(limit=math.inf)),  # reads the norm
        ([did("clip", 20), clear(), backward(), step()], clip(clipped=0)),  # never clips
        ([did("clip", 20), clear(), backward(), did("clip", 20), step()], clip()),  # in two places, one is right
    ],
)
def test_clips_that_do_what_they_are_for_are_silent(happenings, line_of_it):
    assert misplaced(happenings, line_of_it) == []


def test_a_clip_that_happens_once_is_no_habit():
    assert misplaced(SCALED, clip(scale=65536.0), count=2) == []


def away(*, kind="SGD", steps=None, **fields):
    found = loop((10, [clear(), backward(), did("clip", 20), step()]), clips=(clip(**fields),), steps=steps or ())
    return check("clipped-away", found if kind == "SGD" else _of_type(found, kind))


def _of_type(found, kind):
    return type(found)(**{**vars(found), "optimizers": (optimizer(0, type=kind),)})


def test_a_limit_far_below_the_norm_is_an_error_where_the_steps_are_tiny():
    (finding,) = away(steps=sized(2e-5))

    assert finding.severity is Severity.ERROR
    assert finding.place == line(20)
    assert finding.fix == "Raise the limit to about 100, the usual norm of the gradient"


def test_values_that_are_clipped_away_show_between_backward_and_step():
    (finding,) = away(kind="SGD", measured=0, clipped=0, factor=None, norm=None, steps=sized(1e-6, backward=500.0))

    assert finding.evidence["factor"] == pytest.approx(500)


@pytest.mark.parametrize(
    ("fields", "steps", "kind"),
    [
        ({}, sized(1e-2), "SGD"),  # clips always, and moves: recurrent networks
        ({"factor": 4.0}, sized(1e-5), "SGD"),
        ({"clipped": 5}, sized(1e-5), "SGD"),  # outliers only
        ({"measured": 5, "clipped": 5}, sized(1e-5), "SGD"),
        ({"scale": 1024.0}, sized(1e-5), "SGD"),  # misplaced: another rule's case
        ({}, sized(1e-5), "AdamW"),  # divides by the size of the gradient
        ({}, (), "SGD"),
    ],
)
def test_clipping_that_leaves_enough_is_silent(fields, steps, kind):
    assert away(kind=kind, steps=steps, **fields) == []


def exhausted(parameters=(), clips=(), events=(), **fields):
    return check("exhausted-iterator", loop(parameters=parameters, clips=clips, events=events, **fields))


def test_clipping_that_gets_nothing_from_an_iterator_is_an_error():
    nothing = clip(optimizers=(), empty_calls=10, used_up=10, measured=0, clipped=0, factor=None)

    (finding,) = exhausted((parameter("weight", 0),), (nothing,))

    assert finding.place == line(20)
    assert finding.tensors == ("weight",)


@pytest.mark.parametrize("fields", [{"empty_calls": 10}, {"empty_calls": 2, "used_up": 2}, {}])
def test_an_empty_list_or_a_rare_miss_is_silent(fields):
    assert exhausted((parameter("weight", 0),), (clip(**fields),)) == []


def used_up(left):
    return (Event("used_up_iterator", 0, 0, 1, "SGD", line(8), {"left": left, "group": 0}),)


@pytest.mark.parametrize("left", ["nothing", "a rest"])
def test_what_an_optimizer_missed_is_named_at_the_line_that_made_it(left):
    (finding,) = exhausted((parameter("head.weight", 0), outsider("body.weight", 1)), events=used_up(left))

    assert finding.place == line(8)
    assert finding.tensors == ("body.weight",)


def test_a_begun_iterator_that_left_nothing_out_is_silent():
    assert exhausted((parameter("weight", 0),), events=used_up("a rest")) == []


def test_an_optimizer_that_refused_an_empty_list_is_explained():
    ended = RunInfo("train.py", raised=Raised("ValueError", "optimizer got an empty parameter list", line(8)))

    (finding,) = exhausted((outsider("weight", 0, reached=0),), events=used_up("nothing"), info=ended)

    assert "raised `ValueError`" in finding.message
