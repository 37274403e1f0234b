"""Even choices of steps: a long run's file has fewer of the older ones, so half of its list is not half of the run.

steps in the file   0 . . . 400 . . . 800 . 1000 . 1100 1150 1200
evenly spread       0       400       800                    1200
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from itertools import pairwise

_MOST = 0.9


def spread(at: Sequence[int], limit: int) -> list[int]:
    """Return the indices of at most `limit` of some places, evenly spread, first and last included.

    Args:
        at: Where each thing lies: numbers that ascend.
        limit: 2 or more.
    """
    if len(at) <= limit:
        return list(range(len(at)))
    first, length = at[0], at[-1] - at[0]
    return sorted({_nearest(at, first + round(i * length / (limit - 1))) for i in range(limit)})


def even_places(at: Sequence[int]) -> int:
    """Return how many of some places can be chosen evenly: as far apart as they lie over most of their length."""
    gaps = sorted(after - before for before, after in pairwise(at))
    length, passed = sum(gaps), 0
    for gap in gaps:
        passed += gap
        if passed >= _MOST * length:
            return length // max(1, gap) + 1
    return len(at)


def _nearest(at: Sequence[int], wanted: int) -> int:
    above = bisect_left(at, wanted)
    if above == 0 or at[above] - wanted <= wanted - at[above - 1]:
        return above
    return above - 1
