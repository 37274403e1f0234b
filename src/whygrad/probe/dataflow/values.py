"""Values that left torch: which Python and numpy objects they became, and whether an argument is one of them."""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

_N = TypeVar("_N")

_MAX_HELD = 20_000  # objects
_MAX_ITEMS = 1024  # of a list or array, remembered one by one
_MAX_BASES = 8  # views of views of an array
_SMALL = range(-5, 257)  # CPython has one object for each of these


@dataclass(frozen=True, slots=True)
class Found(Generic[_N]):
    """The nodes of values that left torch, among the arguments of a call."""

    exact: Sequence[_N] = ()  # the same object
    guessed: Sequence[_N] = ()  # an equal number
    unknown: bool = False  # another argument may have been computed from such a value


class Values(Generic[_N]):
    """The values that left torch in a step, each with its node."""

    def __init__(self) -> None:
        # numbers and lists take no weak references: they are held, up to a limit, or their ids would be used again
        self._objects: dict[int, tuple[Callable[[], Any], _N]] = {}
        self._numbers: dict[float, _N] = {}
        self._any = False
        self._integers = False

    def __bool__(self) -> bool:
        return self._any

    def add(self, value: Any, node: _N) -> None:
        """Remember a value that left torch."""
        self._any = True
        if len(self._objects) > _MAX_HELD:
            return
        for each in (value, *_items(value)):
            self._integers |= type(each) is int
            if _has_identity(each):
                self._objects[id(each)] = (_reference(each), node)
            number = _distinctive(each)
            if number is not None:
                self._numbers[number] = node
        for number in _numbers_of_array(value):
            self._numbers[number] = node

    def find(self, candidates: Iterable[Any]) -> Found[_N]:
        """Return what is known of values that a call took."""
        exact: list[_N] = []
        guessed: list[_N] = []
        unknown = False
        for value in candidates:
            node = self._identical(value)
            equal = [] if node is not None else self._equal(value)
            if node is not None:
                exact.append(node)
            elif equal:
                guessed += equal
            else:
                unknown |= self._any and (type(value) is not int or self._integers)
        return Found(exact, guessed, unknown)

    def _equal(self, value: Any) -> list[_N]:
        number = _distinctive(value)
        numbers = _numbers_of_array(value) if number is None else [number]
        return [self._numbers[number] for number in numbers if number in self._numbers]

    def _identical(self, value: Any) -> _N | None:
        for _ in range(_MAX_BASES):
            entry = self._objects.get(id(value))
            if entry is not None and entry[0]() is value:
                return entry[1]
            if not is_numpy(value):
                break
            value = getattr(value, "base", None)
        return None


def is_numpy(value: object) -> bool:
    """Return whether a value is numpy's, without importing numpy."""
    return type(value).__module__ == "numpy"


def _has_identity(value: Any) -> bool:
    """Return whether the same object can only be the same value, and is no burden to hold."""
    if type(value) is int:
        return value not in _SMALL
    return not isinstance(value, bool | str) and (type(value) is not list or len(value) <= _MAX_ITEMS)


def _reference(value: Any) -> Callable[[], Any]:
    if is_numpy(value) and hasattr(value, "__array_finalize__"):
        try:
            return weakref.ref(value)
        except TypeError:
            pass
    return lambda: value


def _items(value: Any) -> list[Any]:
    """Return the elements of nested lists, up to a limit."""
    if type(value) is not list:
        return []
    found: list[Any] = []
    todo = [value]
    while todo and len(found) < _MAX_ITEMS:
        for item in todo.pop()[: _MAX_ITEMS - len(found)]:
            found.append(item)
            if type(item) is list:
                todo.append(item)
    return found


def _numbers_of_array(value: Any) -> list[float]:
    if not is_numpy(value) or not getattr(value, "shape", None):
        return []
    if value.dtype.kind != "f" or value.size > _MAX_ITEMS:
        return []
    return [number for n in value.ravel().tolist() if (number := _distinctive(n)) is not None]


def _distinctive(value: Any) -> float | None:
    """Return a number that is not equal to another one by chance: one with many digits."""
    if is_numpy(value) and getattr(value, "shape", None) == ():
        value = value.item()
    if not isinstance(value, float):
        return None
    number = float(value)
    return number if math.isfinite(number) and round(number, 4) != number else None
