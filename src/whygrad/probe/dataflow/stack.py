"""Where the tracer's mode stands in a thread's stack of torch function modes."""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

import torch
from torch._C import _len_torch_function_stack, _pop_torch_function_stack, _push_on_torch_function_stack
from torch.overrides import TorchFunctionMode


def put_at_bottom(mode: TorchFunctionMode) -> None:
    """Put a mode under the user's own.

    Every `__exit__` pops the top of the stack, whatever it is: a mode pushed inside a user's `with` would be popped in
    place of the user's. `torch.set_default_device` insists on being the bottom itself, so it stays below.
    """
    modes = _take_all()
    context = getattr(getattr(torch, "_GLOBAL_DEVICE_CONTEXT", None), "device_context", None)
    position = 1 if modes and context is not None and modes[0] is context else 0
    modes.insert(position, mode)
    for each in modes:
        _push_on_torch_function_stack(each)


def take_out(mode: TorchFunctionMode) -> bool:
    """Take a mode out of this thread's stack; return whether it was there."""
    if not _len_torch_function_stack():
        return False
    modes = _take_all()
    for each in modes:
        if each is not mode:
            _push_on_torch_function_stack(each)
    return any(each is mode for each in modes)


def take_out_soon(mode: TorchFunctionMode) -> None:
    """Take a mode out of this thread's stack as soon as the call that it is handling has ended.

    While torch calls a mode, the mode is not on the stack, and is put back afterwards. So this waits for the first
    event of the profiler that finds it there: it needs no more than one call of a function, of any.
    """

    def on_event(_frame: FrameType, _event: str, _arg: Any) -> None:
        if take_out(mode):
            sys.setprofile(None)

    if sys.getprofile() is None:
        sys.setprofile(on_event)


def _take_all() -> list[Any]:
    return [_pop_torch_function_stack() for _ in range(_len_torch_function_stack())][::-1]
