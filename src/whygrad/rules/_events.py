"""What events carry in their detail."""

from __future__ import annotations

from whygrad.model import Event, Place


def place_in(event: Event, key: str) -> Place | None:
    """Return the place that an event's detail holds as a mapping under a key; None if there is none."""
    fields = event.detail.get(key)
    if not fields:
        return None
    excerpt = tuple((int(line), str(text)) for line, text in fields.get("excerpt", ()))
    return Place(**{**fields, "excerpt": excerpt})
