"""Silencing a finding in the source.

x = x.detach()  # whygrad: ignore[detached]
x = x.detach()  # whygrad: ignore[detached, zero-gradient]
x = x.detach()  # whygrad: ignore
"""

from __future__ import annotations

import re

from whygrad.model import Finding, Place

_COMMENT = re.compile(r"#\s*whygrad:\s*ignore\b\s*+(?:\[([^\]]*)\]|(?!\[|-))")


def is_suppressed(finding: Finding) -> bool:
    """Return whether the source line of the finding carries a comment that silences its rule."""
    return finding.place is not None and any(_silences(text, finding.rule) for text in _texts(finding.place))


def _texts(place: Place) -> tuple[str, ...]:
    return (place.code, *(text for line, text in place.excerpt if line == place.line))


def _silences(text: str, slug: str) -> bool:
    for comment in _COMMENT.finditer(text):
        slugs: str | None = comment[1]
        if slugs is None or slug in re.split(r"[\s,]+", slugs):
            return True
    return False
