"""The user's position at an operation, with the library function between the two.

Taken at every traced operation, so it must be quick: code objects are told apart by their ids (hashing one costs a
microsecond), and equal positions share one object.
"""

from __future__ import annotations

import itertools
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from types import CodeType, FrameType
from typing import NamedTuple

import torch

from whygrad.model import Place
from whygrad.probe.source import Site, UserCode, local_names, place_or_none

MAX_CALLERS = 8
_NAMED_FRAMES = 3
_UNREADABLE = frozenset(("locals", "vars", "dir", "eval", "exec"))  # such a function may hold its frame's own dict
_MAX_SPOTS = 50_000  # a program may compile code for ever

_LIBRARY, _USER, _MACHINERY = range(3)
_PACKAGE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))) + os.sep
_TORCH = os.path.dirname(os.path.abspath(torch.__file__)) + os.sep
# frames between a call and what it runs; they say nothing about it
_MACHINERY_FILES = (
    _PACKAGE,
    *(
        os.path.join(_TORCH, *path)
        for path in (
            ("nn", "modules", "module.py"),
            ("overrides.py",),
            ("_compile.py",),
            ("_dynamo", "eval_frame.py"),
            ("utils", "_contextlib.py"),
        )
    ),
)


class Held(NamedTuple):
    """A name that a value had in a function that was running: `x`, `self.x`."""

    code: CodeType
    name: str


@dataclass(frozen=True, slots=True, eq=False)
class Spot:
    """Where the user's program was when something happened."""

    site: Site | None
    inside: CodeType | None = None  # the library function that the user's line calls, if the operation is in one
    callers: tuple[Site, ...] = ()  # the user's frames further out, as far as they were asked for

    @property
    def place(self) -> Place | None:
        """Return the user's line."""
        return place_or_none(self.site)

    @property
    def within(self) -> str:
        """Return the name of the library function that the user's line calls; "" if it calls the operation itself."""
        return "" if self.inside is None else self.inside.co_qualname

    @property
    def sites(self) -> tuple[Site, ...]:
        """Return all known positions of the user, innermost first."""
        return () if self.site is None else (self.site, *self.callers)


NOWHERE = Spot(None)


class Spots:
    """Captures positions; equal ones are the same object."""

    def __init__(self, user: UserCode) -> None:
        self._user = user
        self._kinds: dict[int, tuple[int, CodeType]] = {}  # the code is held, or its id would be used again
        self._spots: dict[tuple[int, ...], Spot] = {}

    def here(self, *, callers: bool = False) -> Spot:
        """Return the position of the user's innermost frame; with all `callers`, or just those of a comprehension."""
        frame: FrameType | None = sys._getframe(1)
        inside: CodeType | None = None
        kinds = self._kinds
        while frame is not None:
            code = frame.f_code
            known = kinds.get(id(code))
            kind = known[0] if known is not None else self._classify(code)
            if kind == _USER:
                break
            if kind == _LIBRARY:
                inside = code
            frame = frame.f_back
        if frame is None:
            return NOWHERE
        outer = self._callers(frame) if callers or frame.f_code.co_name[0] == "<" else ()
        key = (id(frame.f_code), frame.f_lasti, id(inside), *(n for s in outer for n in (id(s.code), s.lasti)))
        return self._spots.get(key) or self._keep(key, Spot(Site(frame.f_code, frame.f_lasti), inside, outer))

    def names_of(self, thing: object) -> Iterator[Held]:
        """Yield the names that a thing has in the user's innermost frames, as variable or attribute of `self`."""
        frames = (f for f in self._user.frames(sys._getframe(1)) if _UNREADABLE.isdisjoint(f.f_code.co_names))
        for frame in itertools.islice(frames, _NAMED_FRAMES):
            names = local_names(frame)
            attributes = getattr(names.get("self"), "__dict__", {})
            for prefix, held in (("", names), ("self.", attributes)):
                yield from (Held(frame.f_code, f"{prefix}{key}") for key, value in list(held.items()) if value is thing)

    def _callers(self, frame: FrameType) -> tuple[Site, ...]:
        found: list[Site] = []
        outer = frame.f_back
        while outer is not None and len(found) < MAX_CALLERS:
            known = self._kinds.get(id(outer.f_code))
            if (known[0] if known is not None else self._classify(outer.f_code)) == _USER:
                found.append(Site(outer.f_code, outer.f_lasti))
            outer = outer.f_back
        return tuple(found)

    def _classify(self, code: CodeType) -> int:
        if len(self._kinds) > _MAX_SPOTS:
            self._kinds.clear()
            self._spots.clear()
        if self._user.owns(code):
            kind = _USER
        else:
            kind = _MACHINERY if code.co_filename.startswith(_MACHINERY_FILES) else _LIBRARY
        self._kinds[id(code)] = (kind, code)
        return kind

    def _keep(self, key: tuple[int, ...], spot: Spot) -> Spot:
        if len(self._spots) > _MAX_SPOTS:
            self._spots.clear()
        self._spots[key] = spot
        return spot
