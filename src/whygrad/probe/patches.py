"""Every monkeypatch of the process goes through here: named, and each undone.

A wrapper made by `observed` leaves no trace in tracebacks: an exception that passes through it loses the wrapper's own
frame, so the user sees the same text as without whygrad.
"""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import torch

_ABSENT = object()
_PROBE = os.path.dirname(__file__)

Before = Callable[[tuple[Any, ...], dict[str, Any]], None]
After = Callable[[tuple[Any, ...], dict[str, Any], Any], None]
Skip = Callable[[tuple[Any, ...], dict[str, Any]], bool]


def _nothing(*_: object) -> None:
    return None


def observed(
    original: Callable[..., Any], before: Before = _nothing, after: After = _nothing, skip: Skip | None = None
) -> Callable[..., Any]:
    """Return `original` with `before(args, kwargs)` and `after(args, kwargs, result)` around each call.

    Where `skip(args, kwargs)` is true, both are left out. No callback may raise. While torch.compile traces the call,
    all stay out of the way.
    """

    @functools.wraps(original)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        if torch.compiler.is_compiling():
            return original(*args, **kwargs)
        again = (skip is not None and skip(args, kwargs)) or _is_called_by_a_mode(sys._getframe(1))
        if not again:
            before(args, kwargs)
        try:
            result = original(*args, **kwargs)
        except BaseException as error:
            # A bare `raise` adds no entry, so dropping ours leaves the traceback as it would be without us.
            drop_own_frame(error)
            raise
        if not again:
            after(args, kwargs, result)
        return result

    return wrapper


def _is_called_by_a_mode(frame: FrameType | None) -> bool:
    """Return whether a function mode of ours calls a public function of torch anew: its first call is what counts."""
    while frame is not None and frame.f_code.co_filename == __file__:  # wrappers around wrappers
        frame = frame.f_back
    code = None if frame is None else frame.f_code
    return code is not None and code.co_name == "__torch_function__" and code.co_filename.startswith(_PROBE)


def drop_own_frame(error: BaseException) -> None:
    """Remove the entry of the calling frame, the outermost so far, from an exception's traceback."""
    if error.__traceback__ is not None:
        error.__traceback__ = error.__traceback__.tb_next


class Patches:
    """The replaced attributes of one session, undone in reverse order."""

    def __init__(self) -> None:
        self._saved: list[tuple[Any, str, Any, Any]] = []

    def __bool__(self) -> bool:
        return bool(self._saved)

    def replace(self, owner: Any, name: str, new: Any) -> None:
        """Set `owner.name` to `new` and remember what stood there in `owner` itself."""
        before = owner.__dict__.get(name, _ABSENT)
        setattr(owner, name, new)
        self._saved.append((owner, name, before, owner.__dict__[name]))

    def observe(
        self, owner: Any, name: str, before: Before = _nothing, after: After = _nothing, skip: Skip | None = None
    ) -> None:
        """Wrap the function `owner.name` with callbacks (see `observed`)."""
        self.replace(owner, name, observed(getattr(owner, name), before, after, skip))

    def undo(self) -> None:
        """Put everything back, except what somebody else has replaced since: their wrapper still calls ours."""
        for owner, name, before, ours in reversed(self._saved):
            if owner.__dict__.get(name) is not ours:
                continue
            if before is _ABSENT:
                delattr(owner, name)
            else:
                setattr(owner, name, before)
        self._saved.clear()
