"""Run a failing program under a session and return what was found out about its end."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests.probe.watched import watched
from whygrad.model import Place, Raised


def explained(folder: Path, program: Callable[[], object]) -> Raised:
    """Return what is known about the error that ends a program."""
    raised = watched(folder, program, every=1, script="train.py").info.raised
    assert raised is not None
    return raised


def code(place: Place | None) -> str | None:
    """Return the source line of a place."""
    return None if place is None else place.code
