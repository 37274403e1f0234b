"""Gradients of earlier steps, or of another optimizer's loss, must not be left in the sum."""

import pytest

from tests.rules.builders import check, line
from tests.rules.loop_builders import backward, clear, did, loop, step, two
from whygrad.model import Severity

SLUG = "missing-zero-grad"
FIRST = (1, [backward(5), step(7)], {"first": True})


def found(*rounds, **fields):
    return check(SLUG, loop(*rounds, **fields))


def test_rounds_without_a_clear_are_an_error_at_backward():
    (finding,) = found(FIRST, (9, [backward(5), step(7)]))

    assert finding.severity is Severity.ERROR
    assert finding.place == line(5)
    assert finding.message.startswith("The gradients of `optimizer` are never cleared: 9 of its 10 steps")


def test_a_clear_once_an_epoch_is_too_rare():
    (finding,) = found(FIRST, (7, [backward(5), step(7)]), (1, [clear(), backward(5), step(7)]))

    assert "not always cleared" in finding.message


def test_what_another_optimizers_loss_left_by_the_way_is_an_error_at_the_own_backward():
    turn = [
        clear(3, of=[1]),
        backward(5, of=[0, 1], marks=["on-the-way"]),
        step(6),
        backward(7, of=[1]),
        step(8, of=[1]),
    ]

    (finding,) = found((10, turn, {"optimizer": 1}), **two())

    assert finding.place == line(7)
    assert finding.tensors == ("critic.weight",)
    assert finding.evidence["foreign_line"] == 5


@pytest.mark.parametrize(
    "rounds",
    [
        [FIRST, (9, [clear(), backward(5), step(7)])],
        [FIRST, (9, [backward(5, times=4), clear(), step(7)])],
        [FIRST, (9, [did("clear-by-hand"), backward(5), step(7)])],
        [FIRST, (2, [backward(5), step(7)])],  # too few
        [FIRST, (20, [clear(), backward(5), step(7)]), (4, [backward(5), step(7)])],
        [FIRST, (9, [step(7)])],  # two steps on one pass
        [FIRST, (9, [backward(5), step(7)], {"closure": True})],
        [FIRST, (9, [backward(5), did("skip", 7)])],  # the scaler's fault
        [FIRST, (9, [backward(5), step(7, marks=["replaced"])])],  # gradients assigned by hand
    ],
)
def test_near_misses_are_silent(rounds):
    assert found(*rounds) == []


@pytest.mark.parametrize(
    "turn",
    [
        # cleared in between
        [
            clear(3, of=[1]),
            backward(5, of=[0, 1], marks=["on-the-way"]),
            step(6),
            clear(3, of=[1]),
            backward(7, of=[1]),
            step(8, of=[1]),
        ],
        # an encoder that both losses train
        [clear(3, of=[1]), backward(5, of=[0, 1]), step(6), backward(7, of=[1]), step(8, of=[1])],
        # nobody stepped on the first pass: one step on the sum of two losses is meant
        [clear(3, of=[1]), backward(5, of=[0, 1], marks=["on-the-way"]), backward(7, of=[1]), step(8, of=[1])],
    ],
)
def test_sums_of_losses_that_are_meant_are_silent(turn):
    assert found((10, turn, {"optimizer": 1}), **two()) == []
