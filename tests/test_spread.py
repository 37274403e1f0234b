"""Even choices of steps."""

from itertools import pairwise

import pytest

from whygrad.spread import even_places, spread


@pytest.mark.parametrize("limit", [2, 3, 7, 32])
@pytest.mark.parametrize("length", [33, 100, 4097])
def test_of_steps_without_gaps_they_are_the_ones_an_even_distance_apart(length: int, limit: int) -> None:
    chosen = spread(range(length), limit)

    assert chosen == [round(i * (length - 1) / (limit - 1)) for i in range(limit)]


def test_few_are_all_taken() -> None:
    assert spread([], 2) == []
    assert spread([5, 6, 900], 3) == [0, 1, 2]


def test_where_the_old_ones_are_sparse_the_choice_is_even_all_the_same() -> None:
    at = [*range(0, 90_000, 100), *range(90_000, 100_000)]

    chosen = [at[i] for i in spread(at, 101)]

    assert (chosen[0], chosen[-1], len(chosen)) == (0, 99_999, 101)
    assert all(900 <= later - earlier <= 1100 for earlier, later in pairwise(chosen))


def test_nothing_is_taken_twice_where_there_is_a_hole() -> None:
    at = [0, 1, 2, 1000]

    assert [at[i] for i in spread(at, 3)] == [0, 2, 1000] or [at[i] for i in spread(at, 3)] == [0, 1000]
    assert len(set(spread(at, 3))) == len(spread(at, 3))


def test_places_are_even_as_far_as_they_lie_apart_over_most_of_their_length():
    dense, sparse = list(range(1000)), list(range(1000, 20_000, 16))
    many = even_places(dense + sparse)
    assert many == 19_992 // 16 + 1
    chosen = [(dense + sparse)[i] for i in spread(dense + sparse, many)]
    assert sum(place < 10_000 for place in chosen) == pytest.approx(len(chosen) / 2, rel=0.02)
    assert even_places(list(range(50))) == 50
    assert even_places([3]) == 1
