"""Which call of the user's made each node of the autograd graph, as far back as there is room.

Autograd numbers the nodes of a thread in the order they are made: a call that moved the counter made those in between.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from typing import NamedTuple

from whygrad.probe.source import Site

MAX_CALLS = 20_000


class Made(NamedTuple):
    """A call of a torch function."""

    operation: str
    site: Site | None


class Calls:
    """The calls of one thread that made nodes."""

    def __init__(self) -> None:
        self._numbers = array("Q")  # autograd's counter after the call
        self._made: list[Made | None] = []  # None: what was not seen

    def skip(self, number: int) -> None:
        """Note that the nodes up to a number were made unseen."""
        self._append(number, None)

    def note(self, number: int, made: Made) -> None:
        """Note the call after which autograd's counter stood at a number."""
        self._append(number, made)

    def of(self, number: int) -> Made | None:
        """Return the call that made the node of a number; None if it was not seen."""
        index = bisect_right(self._numbers, number)
        return self._made[index] if index < len(self._made) else None

    def _append(self, number: int, made: Made | None) -> None:
        if len(self._made) >= MAX_CALLS:
            del self._numbers[: MAX_CALLS // 2], self._made[: MAX_CALLS // 2]
            self._made[0] = None  # it would stand for all nodes before
        self._numbers.append(number)
        self._made.append(made)
