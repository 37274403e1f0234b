"""Gradients that are cleared before a step used them are a fault, unless the program had another use for them."""

import pytest

from tests.rules.builders import check, line
from tests.rules.loop_builders import backward, clear, did, loop, step, two
from whygrad.model import Severity

SLUG = "zero-grad-misplaced"


def found(*rounds, **fields):
    return check(SLUG, loop(*rounds, **fields))


def test_a_step_whose_gradients_are_cleared_after_backward_is_an_error_at_the_clear():
    (finding,) = found((10, [backward(5), clear(6), step(7, marks=["empty"])]))

    assert finding.severity is Severity.ERROR
    assert finding.place == line(6)
    assert finding.tensors == ("weight",)
    assert "finds no gradient in 10 of 10 steps" in finding.message


def test_clearing_by_hand_after_backward_is_the_same_fault():
    (finding,) = found((10, [backward(5), did("clear-by-hand"), step(7, marks=["empty"])]))

    assert finding.place == line(5)


def test_all_but_the_last_pass_of_a_window_are_lost():
    (finding,) = found((10, [backward(5, times=3), clear(6), backward(5), step(7)]))

    assert finding.place == line(6)
    assert finding.evidence["lost_passes"] == 30
    assert finding.evidence["passes"] == 40
    assert "wipes 3 of 4 backward passes" in finding.message


@pytest.mark.parametrize(
    "rounds",
    [
        [(10, [clear(), backward(times=4), step()])],  # accumulation
        [(10, [backward(times=4), step()]), (10, [clear(), backward(times=4), step()])],
        [(2, [backward(5), clear(6), backward(5), step()])],  # too few
        [(10, [backward(5), clear(6, marks=["used"]), backward(5), step()])],  # two-pass methods
        [(10, [backward(5, marks=["input"]), clear(6), backward(5), step()])],  # adversarial examples
        [(10, [backward(5), clear(6), backward(5), step()], {"closure": True})],  # line search
        [(10, [backward(5), clear(6), backward(5), step()], {"cut_short": True})],
        [(10, [backward(5), clear(6), backward(5), step()], {"unfinished": True})],
        [(2, [backward(5, times=n), clear(6), backward(5), step()]) for n in (1, 3, 5, 8)],  # a guard, no habit
        [(40, [clear(), backward(), step()]), (3, [clear(), backward(), clear(), backward(), step()])],
    ],
)
def test_near_misses_are_silent(rounds):
    assert found(*rounds) == []


def test_gradients_of_another_optimizers_loss_may_be_cleared():
    used = [backward(5, of=[0, 1]), step(6, of=[1]), clear(7), backward(8), step(9)]
    by_the_way = [backward(5, of=[0, 1], marks=["on-the-way"]), clear(7), backward(8), step(9)]

    assert found((10, used), **two()) == []
    assert found((10, by_the_way), **two()) == []


def test_a_clear_that_takes_the_gradients_of_both_loses_a_pass_that_reached_both():
    (finding, *_) = found((10, [backward(5, of=[0, 1]), clear(7, of=[0, 1]), backward(8), step(9)]), **two())

    assert finding.place == line(7)
