"""Which steps of a long run are kept: the longer ago, the fewer; the first, the last and marked ones always."""

from __future__ import annotations

from itertools import pairwise

import pytest

from whygrad.runfile.retention import Turns
from whygrad.runfile.thinning import Thinner


def kept(thinner: Thinner, order: list[int], *, flush_every: int = 50, marks: tuple[int, ...] = ()) -> list[int]:
    """Return the steps that stay of as many as `order` has; each belongs to the optimizer it names."""
    turns, left = Turns(), set()
    for step, optimizer in enumerate(order):
        thinner.add(step, turns.take(optimizer) + optimizer)
        left.add(step)
        if step in marks:
            thinner.mark(step)
        if step % flush_every == 0:
            left.difference_update(thinner.expire())
    left.difference_update(thinner.expire())
    assert len(left) == len(thinner)
    return sorted(left)


def test_of_a_short_run_every_step_stays() -> None:
    assert kept(Thinner(1000, 10), [0] * 1000) == list(range(1000))


@pytest.mark.parametrize("steps", [1001, 5000, 30_000])
@pytest.mark.parametrize("flush_every", [1, 700])
def test_there_are_never_more_than_the_limit_and_seldom_much_fewer(steps: int, flush_every: int) -> None:
    found = kept(Thinner(1000, 100), [0] * steps, flush_every=flush_every)

    assert 800 <= len(found) <= 1000


def test_the_first_and_the_last_steps_are_dense() -> None:
    found = kept(Thinner(1000, 100), [0] * 100_000)

    assert found[:100] == list(range(100))
    assert found[-50:] == list(range(99_950, 100_000))


def test_the_density_halves_as_the_age_doubles() -> None:
    last = 2**17
    found = kept(Thinner(2000, 10), [0] * (last + 1))

    octaves = [sum(last - 2 * age < step <= last - age for step in found) for age in (2**k for k in range(10, 16))]
    densities = [count / 2**k for count, k in zip(octaves, range(10, 16), strict=True)]
    assert all(0.4 <= older / newer <= 0.65 for newer, older in pairwise(densities))


@pytest.mark.parametrize("turns", [[0, 1], [0, 0, 0, 1], [0, 0, 0, 0, 0, 1], [0, 1, 2], [0] * 7 + [1]])
def test_however_optimizers_take_turns_each_keeps_its_share(turns: list[int]) -> None:
    order = turns * (60_000 // len(turns))

    found = kept(Thinner(1000, 10), order)

    for optimizer in set(turns):
        old = [step for step in found if order[step] == optimizer and step < 30_000]
        share = len(old) / sum(step < 30_000 for step in found)
        assert share == pytest.approx(turns.count(optimizer) / len(turns), rel=0.25)


def test_of_optimizers_made_for_ever_not_every_first_step_stays() -> None:
    order = [step // 5 for step in range(50_000)]

    found = kept(Thinner(500, 10), order)

    assert len(found) <= 500
    assert sum(step < 25_000 for step in found) < 150


def test_a_step_that_is_marked_stays_with_some_before_and_after_it() -> None:
    found = kept(Thinner(400, 10), [0] * 50_000, marks=(7777,))

    assert set(range(7777 - 11, 7777 + 5)) <= set(found)
    assert not {7700, 7701, 7800, 7801} <= set(found)


def test_a_step_can_be_marked_when_later_ones_are_there_already() -> None:
    thinner = Thinner(400, 0)
    gone: set[int] = set()
    for step in range(20_000):
        thinner.add(step, step)
        if step == 5020:
            thinner.mark(5001)
        gone.update(thinner.expire())

    assert gone.isdisjoint(range(4990, 5006))
    assert 5010 in gone or 5011 in gone


def test_when_asked_again_and_again_it_gives_up_everything_the_newest_last() -> None:
    thinner = Thinner(400, 50)
    for step in range(1000):
        thinner.add(step, step)
    gone = thinner.expire()
    while len(thinner):
        gone += thinner.expire(narrower=True)

    assert sorted(gone) == list(range(1000))
    assert gone[-1] == 999
    assert thinner.expire(narrower=True) == []


def test_turns_are_counted_for_each_optimizer() -> None:
    turns = Turns()

    assert [turns.take(optimizer) for optimizer in (0, 1, 0, None, 0, None)] == [0, 0, 1, 0, 2, 1]
