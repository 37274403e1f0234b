"""Looks into the backward of an `autograd.Function` of the user's: the calls there are calls of torch like any other.

Backward runs without the torch function modes of the program's thread, so the mode is put there before such a node runs
and taken out after it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from torch.overrides import TorchFunctionMode

from whygrad.probe.dataflow.stack import put_at_bottom, take_out
from whygrad.probe.nonfinite.passes import Pass
from whygrad.probe.nonfinite.walk import Walk
from whygrad.probe.source import UserCode


def watch_functions(
    graph: Walk, watched: Pass, mode: TorchFunctionMode, user: UserCode, inside: Callable[[bool], bool]
) -> None:
    """Put a mode on while nodes of the user's own functions run.

    Args:
        graph: The graph of a pass.
        watched: The pass; it takes the hooks out.
        mode: The mode.
        user: Tells whose functions they are.
        inside: Told that such a node begins or ends; returns whether this is a thread to watch.
    """

    def enter(_gradients: Any) -> None:
        if watched.open and inside(True):
            put_at_bottom(mode)

    def leave(_given: Any, _received: Any) -> None:
        if inside(False):
            take_out(mode)

    for node in graph.nodes:
        if _is_of_user(type(node), user):
            watched.handles += (node.register_prehook(enter), node.register_hook(leave))


def _is_of_user(kind: type, user: UserCode) -> bool:
    backward = getattr(getattr(kind, "_forward_cls", None), "backward", None)
    code = getattr(inspect.unwrap(backward), "__code__", None) if backward is not None else None
    return code is not None and user.owns(code)
