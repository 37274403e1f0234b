"""Optimizers that step right after the other one's loss, and only then, hold each other's parameters."""

import pytest

from tests.rules.builders import check, line
from tests.rules.loop_builders import backward, clear, loop, step, two

SLUG = "optimizers-swapped"


def found(*rounds):
    return check(SLUG, loop(*rounds, **two()))


def crossed(marks=("empty",)):
    """Return the rounds of two optimizers, each stepping after the other one's loss."""
    other = {"optimizer": 1}
    first = [backward(6), step(7, of=[1]), clear(8), backward(4, of=[1]), step(5, marks=marks)]
    second = [backward(4, of=[1]), step(5), clear(8, of=[1]), backward(6), step(7, of=[1], marks=marks)]
    return (10, first), (10, second, other)


def test_a_crossed_pair_is_one_error_where_the_first_was_made():
    (finding,) = found(*crossed())

    assert finding.place == line(1)
    assert finding.tensors == ("generator.weight", "critic.weight")
    assert line(2) in finding.also


def test_a_crossed_pair_that_steps_on_leftovers_is_found_too():
    assert len(found(*crossed(marks=()))) == 1


def test_where_one_loss_reaches_both_the_other_side_tells():
    generator = [backward(6, of=[0, 1]), step(7, of=[1]), clear(8), backward(4, of=[1]), step(5, marks=["empty"])]
    critic = [backward(4, of=[1]), step(5), backward(6, of=[0, 1]), step(7, of=[1])]

    assert len(found((10, generator), (10, critic, {"optimizer": 1}))) == 1


@pytest.mark.parametrize(
    "rounds",
    [
        # each after its own loss
        [
            (10, [backward(4), step(5)]),
            (10, [backward(4), step(5), backward(6, of=[1]), step(7, of=[1])], {"optimizer": 1}),
        ],
        # both steps at the end share the passes
        [
            (10, [backward(4), backward(6, of=[1]), step(5)]),
            (10, [backward(4), backward(6, of=[1]), step(5), step(7, of=[1])], {"optimizer": 1}),
        ],
        # a step that was postponed by one turn, and has its gradients
        [(10, [backward(4), step(7, of=[1]), backward(6, of=[1]), step(5)])],
        # nothing reaches it at all: another rule's case
        [(10, [backward(6, of=[1]), step(5, marks=["empty"])])],
        [(2, crossed()[0][1]), (2, crossed()[1][1], {"optimizer": 1})],
    ],
)
def test_near_misses_are_silent(rounds):
    assert found(*rounds) == []
