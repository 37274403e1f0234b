"""Names and numbers in the sentences that findings say."""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import takewhile
from pathlib import PurePath

from whygrad.model import Place


def named(names: Iterable[str]) -> str:
    """Return how a sentence names tensors: "`head.weight`", with " (+3)" behind it where it stands for three more."""
    first, *others = names
    return f"`{first}` (+{len(others)})" if others else f"`{first}`"


def counted(count: int, noun: str, many: str = "") -> str:
    """Return "1 step" or "200 steps"; `many` where an s does not make the plural."""
    return f"{count} {noun}" if count == 1 else f"{count} {many or noun + 's'}"


def passes(count: int) -> str:
    """Return "1 backward pass" or "200 backward passes"."""
    return counted(count, "backward pass", "backward passes")


def shared_parts(names: Iterable[str]) -> int:
    """Return how many leading parts all dotted names share, the last part of each left out."""
    columns = zip(*(name.split(".")[:-1] for name in names), strict=False)
    return sum(1 for _ in takewhile(lambda parts: len(set(parts)) == 1, columns))


def number(value: float) -> str:
    """Return a number with three significant digits: "0", "12", "0.00123", "1.2e-09", "NaN"."""
    return "NaN" if math.isnan(value) else f"{value:.3g}"


def at(place: Place | None) -> str:
    """Return " at train.py:31", or nothing where no place is known."""
    return "" if place is None else f" at {PurePath(place.file).name}:{place.line}"
