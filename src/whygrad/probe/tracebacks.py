"""Tracebacks that read as without the tracer.

While a torch function mode is on, torch's Python functions call themselves through it: `F.cross_entropy` ->
`handle_torch_function` -> the mode -> `F.cross_entropy`. An error inside then shows the first two frames in addition.
"""

from __future__ import annotations

from itertools import pairwise
from types import TracebackType

_DETOUR = "handle_torch_function"


def clean_traceback(error: BaseException) -> None:
    """Remove the detour through the tracer from an exception's traceback and those of its causes and contexts."""
    seen: set[int] = set()
    todo: list[BaseException | None] = [error]
    while todo:
        each = todo.pop()
        if each is not None and id(each) not in seen:
            seen.add(id(each))
            each.__traceback__ = without_detours(each.__traceback__)
            todo += [each.__cause__, each.__context__]


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
    kept = [entry for index, entry in enumerate(entries) if index not in drop]
    result: TracebackType | None = None
    for entry in reversed(kept):
        result = TracebackType(result, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
    return result
