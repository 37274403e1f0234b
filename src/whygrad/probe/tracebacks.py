"""Tracebacks that read as without the probe.

While a torch function mode is on, torch's Python functions call themselves through it: `F.cross_entropy` ->
`handle_torch_function` -> the mode -> `F.cross_entropy`. An error inside then shows the first two frames in addition.
A Ctrl-C that arrives while the probe works shows the probe's frames at its end.
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from types import TracebackType

_DETOUR = "handle_torch_function"
_PROBE = str(Path(__file__).parent)


def clean_traceback(error: BaseException) -> None:
    """Remove what the probe added to an exception's traceback, and to those of its causes and contexts."""
    seen: set[int] = set()
    todo: list[BaseException | None] = [error]
    while todo:
        each = todo.pop()
        if each is not None and id(each) not in seen:
            seen.add(id(each))
            each.__traceback__ = without_callbacks(without_detours(each.__traceback__))
            todo += [each.__cause__, each.__context__]


def without_callbacks(trace: TracebackType | None) -> TracebackType | None:
    """Return a traceback that ends before the first frame of the probe: those that pass a call on drop themselves."""
    kept: list[TracebackType] = []
    while trace is not None and not trace.tb_frame.f_code.co_filename.startswith(_PROBE):
        kept.append(trace)
        trace = trace.tb_next
    return kept[0] if trace is None and kept else _linked(kept)


def without_detours(trace: TracebackType | None) -> TracebackType | None:
    """Return a traceback without each function's call of itself through `handle_torch_function`."""
    entries: list[TracebackType] = []
    while trace is not None:
        entries.append(trace)
        trace = trace.tb_next
    drop: set[int] = set()
    for index, (outer, inner) in enumerate(pairwise(entries)):
        if inner.tb_frame.f_code.co_name == _DETOUR and index + 2 < len(entries):
            again = entries[index + 2]
            if again.tb_frame.f_code is outer.tb_frame.f_code:
                drop |= {index, index + 1}
    if not drop:
        return entries[0] if entries else None
    return _linked([entry for index, entry in enumerate(entries) if index not in drop])


def _linked(entries: list[TracebackType]) -> TracebackType | None:
    result: TracebackType | None = None
    for entry in reversed(entries):
        result = TracebackType(result, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
    return result
