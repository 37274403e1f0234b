"""What happened, counted by kind, subject and line."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

from whygrad.model import Event, Place
from whygrad.probe.source import Site, place_or_none

MAX_EVENTS = 5000  # distinct ones; a program that generates code could make new lines for ever


@dataclass(slots=True)
class _Seen:
    first: int
    last: int
    count: int
    detail: dict[str, Any]


@dataclass(slots=True)
class EventLog:
    """Events of one run."""

    _seen: dict[tuple[str, str, Site | Place | None], _Seen] = field(default_factory=dict)

    def note(self, kind: str, step: int, site: Site | None, subject: str = "", **detail: Any) -> None:
        """Count an event; the detail of its first time is kept."""
        self._count(kind, step, site, subject, detail)

    def note_place(self, kind: str, step: int, place: Place, subject: str = "", **detail: Any) -> None:
        """Count an event at a line that was read, not run."""
        self._count(kind, step, place, subject, detail)

    def _count(self, kind: str, step: int, site: Site | Place | None, subject: str, detail: dict[str, Any]) -> None:
        entry = self._seen.get((kind, subject, site))
        if entry is not None:
            entry.last = step
            entry.count += 1
        elif len(self._seen) < MAX_EVENTS:
            self._seen[kind, subject, site] = _Seen(step, step, 1, detail)

    def facts(self) -> Iterator[Event]:
        """Yield the events, first occurrence first."""
        for (kind, subject, site), seen in self._seen.items():
            yield Event(kind, seen.first, seen.last, seen.count, subject, _as_place(site), seen.detail)


def _as_place(site: Site | Place | None) -> Place | None:
    return site if isinstance(site, Place) else place_or_none(site)


def place_as_dict(place: Place | None) -> dict[str, Any] | None:
    """Return a place as an event's detail holds it."""
    return None if place is None else asdict(place)
