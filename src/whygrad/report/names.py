"""Many qualified names in few words.

    encoder.layers.0-11.attn.*    36
    head.weight                    1

`prefix.*` stands only where every parameter under the prefix is meant, so a pattern never claims too much.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import groupby

_Parts = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Group:
    """A pattern and the number of names it stands for."""

    pattern: str
    count: int


def group(names: Iterable[str], universe: Iterable[str]) -> tuple[Group, ...]:
    """Group names, first seen first.

    Args:
        names: The names to show.
        universe: Every parameter name of the run. A name outside of it is never covered by `*`.

    Returns:
        Groups that together stand for each distinct name exactly once; `*` alone stands for the whole universe.
    """
    wanted = tuple(dict.fromkeys(names))
    everything = frozenset(universe)
    total = Counter(prefix for name in everything for prefix in _prefixes(name))
    chosen = Counter(prefix for name in wanted if name in everything for prefix in _prefixes(name))
    whole = frozenset(prefix for prefix, count in chosen.items() if count > 1 and count == total[prefix])
    entries = Counter(_covering(name, whole) if name in everything else tuple(name.split(".")) for name in wanted)
    return tuple(Group(".".join(parts), count) for parts, count in _with_ranges(entries).items())


def _prefixes(name: str) -> list[_Parts]:
    parts = tuple(name.split("."))
    return [parts[:i] for i in range(len(parts))]


def _covering(name: str, whole: frozenset[_Parts]) -> _Parts:
    """Return the shortest prefix that is meant as a whole, with "*", else the name's own parts."""
    covering = next((prefix for prefix in _prefixes(name) if prefix in whole), None)
    return tuple(name.split(".")) if covering is None else (*covering, "*")


def _with_ranges(entries: Mapping[_Parts, int]) -> dict[_Parts, int]:
    """Join entries that differ in one number, position by position from the right."""
    joined = dict(entries)
    for position in reversed(range(max(map(len, joined), default=0))):
        joined = _joined_at(position, joined)
    return joined


def _joined_at(position: int, entries: Mapping[_Parts, int]) -> dict[_Parts, int]:
    buckets: dict[tuple[_Parts, _Parts | None], list[_Parts]] = {}
    for parts in entries:
        numbered = len(parts) > position and _is_number(parts[position])
        key = (parts[:position], parts[position + 1 :]) if numbered else (parts, None)
        buckets.setdefault(key, []).append(parts)
    joined = {}
    for (left, right), members in buckets.items():
        count = sum(entries[parts] for parts in members)
        numbers = [int(parts[position]) for parts in members] if right is not None else []
        joined[left if right is None else (*left, _ranges(numbers), *right)] = count
    return joined


def _is_number(part: str) -> bool:
    return part.isascii() and part.isdecimal() and (part == "0" or part[0] != "0") and len(part) <= 9


def _ranges(numbers: Iterable[int]) -> str:
    """Return "0-3,7" for 7, 0, 1, 2, 3."""
    runs = groupby(enumerate(sorted(numbers)), key=lambda pair: pair[1] - pair[0])
    spans = [[value for _, value in run] for _, run in runs]
    return ",".join(str(span[0]) if len(span) == 1 else f"{span[0]}-{span[-1]}" for span in spans)
