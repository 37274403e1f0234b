"""The standard streams: speaking on whatever of them a program has left, and what they can show."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import TextIO

_NARROWEST, _WIDEST = 60, 120
_UNKNOWN = 100


def say(text: str) -> None:
    """Write on stderr, after everything that the program has written; nothing where there is no stderr any more."""
    flush()
    stream = sys.__stderr__
    if stream is not None:
        with suppress(OSError, ValueError):
            print(text, end="" if text.endswith("\n") else "\n", file=stream, flush=True)


def flush() -> None:
    """Flush the standard streams; one that the program has closed or replaced by something odd is left alone."""
    for stream in (sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__):
        if stream is not None:
            with suppress(Exception):
                stream.flush()


def is_terminal(stream: TextIO | None) -> bool:
    """Return whether somebody looks at the stream."""
    try:
        return stream is not None and stream.isatty()
    except ValueError:  # closed
        return False


def width(stream: TextIO | None) -> int:
    """Return how many columns a text for that stream may have."""
    try:
        columns = os.get_terminal_size(stream.fileno()).columns if stream is not None else 0
    except (OSError, ValueError):  # no terminal; closed
        columns = 0
    return max(_NARROWEST, min(columns or _UNKNOWN, _WIDEST))
