"""The small change of writing to people: safe text, colours, numbers, counts, lines of a width, short paths.

All that comes from a run file (names, messages, source lines) was written by somebody else's program: it goes through
`printable` before it reaches a terminal, and no markup language is ever applied to it.
"""

from __future__ import annotations

import math
import os
import textwrap

from whygrad.model import Place

_STYLES = {
    "error": "1;31",
    "warning": "1;33",
    "info": "1;36",
    "good": "1;32",
    "strong": "1",
    "faint": "2",
    "place": "34",
    "first": "32",
    "second": "35",
}


def paint(text: str, style: str, *, color: bool) -> str:
    """Return the text in an ANSI style, or as it is where colours are off."""
    return f"\x1b[{_STYLES[style]}m{text}\x1b[0m" if color and text else text


def printable(text: str) -> str:
    """Return the text with tabs expanded and everything a terminal would act on, or hide, written as an escape."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else _escaped(c) for c in text.expandtabs(4))


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")


def number(value: object) -> str:
    """Return a number in at most about eight characters: three significant digits, whole numbers whole."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if not isinstance(value, float):
        return printable(str(value))
    if math.isnan(value):
        return "NaN"
    if value.is_integer() and abs(value) < 1e6:
        return str(int(value))
    return f"{value:.3g}"


def spot(place: Place) -> str:
    """Return "train.py:41"."""
    return f"{short_path(place.file)}:{place.line}"


def where(place: Place) -> str:
    """Return "train.py:41 in forward"."""
    return f"{spot(place)} in {printable(place.function)}" if place.function else spot(place)


def scientific(value: float | None, digits: int = 1) -> str:
    """Return "1.6e-02" for a size on a log scale: "0" where it is exactly that, "-" for what was not recorded."""
    if value is None:
        return "-"
    if math.isnan(value):
        return "NaN"
    return "0" if value == 0 else f"{value:.{digits}e}"


def times(ratio: float) -> str:
    """Return a ratio of at least 1 as people say it: "1.4", "124", "52,000", "3.1e+09"."""
    if ratio >= 1e6:
        return f"{ratio:.1e}" if math.isfinite(ratio) else "infinitely many"
    return f"{ratio:,.0f}" if ratio >= 10 else f"{ratio:.1f}"


def plural(count: int, noun: str, many: str = "") -> str:
    """Return "1 step" or "2 steps"; `many` where an s does not make the plural."""
    return f"{count} {noun}" if count == 1 else f"{count} {many or noun + 's'}"


def wrapped(text: str, width: int, *, first: str = "", rest: str = "") -> list[str]:
    """Return the printable text in lines of at most `width` where its words allow, led by `first` and `rest`."""
    return textwrap.wrap(
        printable(text),
        max(width, len(first) + 20, len(rest) + 20),
        initial_indent=first,
        subsequent_indent=rest,
        break_long_words=False,
        break_on_hyphens=False,
    )


def clipped(text: str, width: int) -> str:
    """Return the text in at most `width` (>= 4) characters, the middle left out: `encoder..in_proj_weight`."""
    if len(text) <= width:
        return text
    head = (width - 2) // 2
    return f"{text[:head]}..{text[len(text) - (width - 2 - head) :]}"


def short_path(path: str | os.PathLike[str]) -> str:
    """Return the path from the working directory where that is shorter, else as it is; printable."""
    full = os.fspath(path)
    try:
        relative = os.path.relpath(full)
    except (ValueError, OSError):  # another drive; a working directory that is gone
        return printable(full)
    return printable(min(full, relative, key=len))
