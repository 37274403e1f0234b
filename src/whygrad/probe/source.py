"""Whose line is it: from a running frame to a place in the user's program.

Capturing keeps only (code object, instruction offset), which costs about a microsecond; lines and excerpts are looked
up later. A place is the user's innermost frame: not torch, not whygrad, not an installed package, unless the script
itself lives there.
"""

from __future__ import annotations

import ast
import functools
import linecache
import os
import site
import sys
import sysconfig
from collections.abc import Iterator
from types import CodeType, FrameType, TracebackType
from typing import NamedTuple

import torch

from whygrad.model import Place

EXCERPT_LINES = 2  # neighbours shown on each side

PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_TORCH = os.path.dirname(os.path.abspath(torch.__file__)) + os.sep
_LIBRARIES = tuple(
    {
        path.rstrip(os.sep) + os.sep
        for path in (
            *(sysconfig.get_paths()[key] for key in ("stdlib", "platstdlib", "purelib", "platlib")),
            *site.getsitepackages(),
            site.getusersitepackages(),
        )
    }
)


class Site(NamedTuple):
    """A position in running code."""

    code: CodeType
    lasti: int


class UserCode:
    """Decides which code is the user's; one per session."""

    def __init__(self, script: str = "") -> None:
        path = os.path.abspath(script) if script else ""
        self._script = path
        folder = os.path.dirname(path) + os.sep
        self._home = folder if path and folder.startswith(_LIBRARIES) and not folder.startswith(_TORCH) else None
        self._known: dict[int, tuple[CodeType, bool]] = {}  # by id, which is quick to hash

    def owns(self, code: CodeType) -> bool:
        """Return whether a code object belongs to the user's program."""
        known = self._known.get(id(code))
        if known is None:
            known = self._known[id(code)] = code, self._is_user(code.co_filename)
        return known[1]

    def _is_user(self, file: str) -> bool:
        if file.startswith("<"):  # `-c`, a notebook's cell; generated code of libraries is also called <...>
            return file.startswith(("<string>", "<stdin>", "<ipython"))
        path = os.path.abspath(file)
        if path == self._script:
            return True
        if path.startswith((PACKAGE, _TORCH)):
            return False
        if (
            self._home is not None
            and path.startswith(self._home)
            and os.sep + "site-packages" + os.sep not in (path[len(self._home) :])
        ):
            return True
        return not path.startswith(_LIBRARIES)

    def files(self) -> list[str]:
        """Return the files of the program that have been run, as far as is known: those of code that was met first."""
        found = {code.co_filename: None for code, own in list(self._known.values()) if own}
        folders = {os.path.dirname(os.path.abspath(file)) for file in found}
        for module in list(sys.modules.values()):
            file = getattr(module, "__file__", None)
            if isinstance(file, str) and os.path.dirname(os.path.abspath(file)) in folders and self._is_user(file):
                found.setdefault(file)
        return list(found)

    def frames(self, start: FrameType | None) -> Iterator[FrameType]:
        """Yield the user's frames from `start` outwards."""
        frame = start
        while frame is not None:
            if self.owns(frame.f_code):
                yield frame
            frame = frame.f_back

    def capture(self, depth: int = 1, *, skip_methods_of: object = None) -> Site | None:
        """Return the innermost user position of the calling stack.

        Args:
            depth: How many frames to leave out, counted from the caller of this method.
            skip_methods_of: Leave out frames that run methods of this object: the line that calls an optimizer's
                constructor is wanted, not the `super().__init__()` inside it.
        """
        for frame in self.frames(sys._getframe(depth + 1)):
            if skip_methods_of is not None and _runs_method_of(frame, skip_methods_of):
                continue
            return Site(frame.f_code, frame.f_lasti)
        return None

    def of_traceback(self, trace: TracebackType | None) -> Site | None:
        """Return the innermost user position of a traceback."""
        found: Site | None = None
        while trace is not None:
            if self.owns(trace.tb_frame.f_code):
                found = Site(trace.tb_frame.f_code, trace.tb_lasti)
            trace = trace.tb_next
        return found


def _runs_method_of(frame: FrameType, owner: object) -> bool:
    code = frame.f_code
    if not code.co_argcount or code.co_varnames[0] != "self":
        return False
    return local_names(frame).get("self") is owner


_SNAPSHOTS = frozenset(("locals", "vars", "dir", "eval", "exec"))


def local_names(frame: FrameType) -> dict[str, object]:
    """Return a copy of a frame's local names.

    Before Python 3.13 `f_locals` of a function is a dict that the frame keeps, and with it every tensor in it, until
    the function returns; so it is emptied again. A function that asks for its `locals()` itself holds that very dict:
    there it is left alone.
    """
    if _SNAPSHOTS & set(frame.f_code.co_names):
        return {}
    names = frame.f_locals
    copy = dict(names)
    if frame.f_code.co_flags & 0x1 and type(names) is dict:  # CO_OPTIMIZED: a function, not a module or a class body
        names.clear()
    return copy


@functools.lru_cache(maxsize=4096)
def _lines_of(code: CodeType) -> tuple[tuple[int | None, int | None, int | None, int | None], ...]:
    return tuple(code.co_positions())


def span(position: Site) -> tuple[int, int | None, int | None, int | None]:
    """Return (line, end line, column, end column) of the expression at a position; columns are UTF-8 offsets."""
    try:
        line, end_line, column, end_column = _lines_of(position.code)[position.lasti // 2]
    except IndexError:
        line = end_line = column = end_column = None
    return line or position.code.co_firstlineno, end_line, column, end_column


@functools.lru_cache(maxsize=16384)
def place(position: Site) -> Place:
    """Return the place of a position, with its source line and neighbours."""
    return line_place(position.code.co_filename, span(position)[0], position.code.co_name)


def line_place(file: str, line: int, function: str = "") -> Place:
    """Return the place of a line of a file."""
    near = range(max(1, line - EXCERPT_LINES), line + EXCERPT_LINES + 1)
    lines = tuple((n, text.rstrip("\n")) for n in near if (text := linecache.getline(file, n)))
    code = linecache.getline(file, line).strip()
    path = file if file.startswith("<") else os.path.abspath(file)
    return Place(path, line, "" if function == "<module>" else function, code, lines)


def place_or_none(position: Site | None) -> Place | None:
    """Return the place of a position, or None."""
    return None if position is None else place(position)


def expression(position: Site) -> ast.expr | None:
    """Return the parsed expression at a position, where its source is at hand."""
    line, end_line, column, end_column = span(position)
    if column is None or end_column is None or end_line != line:
        return None
    text = linecache.getline(position.code.co_filename, line).encode()[column:end_column].decode(errors="replace")
    try:
        return ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError):
        return None


@functools.lru_cache(maxsize=64)
def syntax_tree(file: str) -> ast.Module | None:
    """Return the parsed source of a file, or None where it can't be read or parsed."""
    lines = linecache.getlines(file)
    try:
        return ast.parse("".join(lines)) if lines else None
    except (SyntaxError, ValueError):
        return None
