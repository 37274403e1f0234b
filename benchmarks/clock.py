"""A clock that stands still while a program waits for its turn."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class TurnClock:
    """Counts seconds as another clock does, but for those in which it was stopped."""

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock = clock
        self._stopped_s = 0.0

    def __call__(self) -> float:
        """Return the time, in seconds."""
        return self._clock() - self._stopped_s

    @contextmanager
    def stopped(self) -> Iterator[None]:
        """Do not count the time of the block."""
        began = self._clock()
        yield
        self._stopped_s += self._clock() - began
