"""Numbers for what other rows refer to: places and layouts."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Generic, TypeVar

Value = TypeVar("Value", bound=Hashable)


class Numbers(Generic[Value]):
    """Numbers of distinct values, counted from 1; `unsaved` are those that the file does not hold yet."""

    def __init__(self, most: int | None = None) -> None:
        """Remember at most `most` values: one that was forgotten gets a new number when it comes again."""
        self.unsaved: dict[int, Value] = {}
        self._known: dict[Value, int] = {}
        self._most = most
        self._last = 0

    def known(self) -> Iterable[int]:
        """Return the numbers that are remembered."""
        return self._known.values()

    def of(self, value: Value) -> int:
        """Return the number of `value`."""
        number = self._known.get(value)
        if number is not None:
            return number
        if len(self._known) == self._most:
            del self._known[next(iter(self._known))]
        self._last += 1
        self._known[value] = self._last
        self.unsaved[self._last] = value
        return self._last
