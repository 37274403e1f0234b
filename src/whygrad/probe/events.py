"""What happened, counted by kind, subject and line."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
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

    def share_out(self, kind: str, step: int, times: int) -> None:
        """Count an event so many times more, shared out among its lines as before; `step` is that of the last."""
        seen = [entry for (of, _, _), entry in self._seen.items() if of == kind]
        left, total = times, sum(entry.count for entry in seen)
        for entry in seen:
            part = round(left * entry.count / total) if total else 0
            total -= entry.count
            left -= part
            if part:
                entry.last = step
                entry.count += part

    def facts(self) -> Iterator[Event]:
        """Yield the events, first occurrence first; what two calls on one line did is one event."""
        found: dict[tuple[str, str, Place | None], Event] = {}
        for (kind, subject, site), seen in self._seen.items():
            place = _as_place(site)
            event = Event(kind, seen.first, seen.last, seen.count, subject, place, seen.detail)
            known = found.get((kind, subject, place))
            found[kind, subject, place] = event if known is None else _added_up(known, event)
        yield from found.values()


def _added_up(first: Event, second: Event) -> Event:
    return replace(first, last_step=max(first.last_step, second.last_step), count=first.count + second.count)


def _as_place(site: Site | Place | None) -> Place | None:
    return site if isinstance(site, Place) else place_or_none(site)


def place_as_dict(place: Place | None) -> dict[str, Any] | None:
    """Return a place as an event's detail holds it."""
    return None if place is None else asdict(place)
