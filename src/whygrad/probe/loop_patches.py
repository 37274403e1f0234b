"""What the loop calls besides backward and step: zero_grad, schedulers; and who reads a gradient by hand."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from types import FrameType
from typing import TYPE_CHECKING, Any

import torch
from torch import nn
from torch.optim import lr_scheduler

from whygrad.probe.dataflow.arguments import Call
from whygrad.probe.dataflow.operations import Effect, Operation
from whygrad.probe.patches import Patches
from whygrad.probe.source import PACKAGE, Site

if TYPE_CHECKING:
    from whygrad.probe.session import Session

_TORCH = os.path.dirname(os.path.abspath(torch.__file__)) + os.sep


def patch_clears(session: Session, patches: Patches) -> None:
    """Observe zero_grad of optimizers and modules; listen to reads of gradients in traced steps."""
    wrap = session.guard.wrap

    def look(_args: Any, _kwargs: Any) -> None:
        session.loop.look()

    def cleared_by_optimizer(args: tuple[Any, ...], _kwargs: Any, _result: Any) -> None:
        tracked = session.optimizers.get(args[0])
        tracked.zero_grads += 1
        session.loop.after_clear(tracked, session.user.capture(1, skip_methods_of=args[0]))

    def cleared_by_module(args: tuple[Any, ...], _kwargs: Any, _result: Any) -> None:
        session.loop.after_clear(None, session.user.capture(1, skip_methods_of=args[0]))

    def listen(_func: Callable[..., Any], operation: Operation, call: Call, _here: Callable[[], Site | None]) -> None:
        if operation.effect is Effect.GET_GRAD and call.result is not None and not _is_read_by_torch():
            session.loop.note_read(call.args[0])

    before, calm = wrap("loop", look), session.calm
    after = wrap("loop", cleared_by_optimizer)
    patches.observe(torch.optim.Optimizer, "zero_grad", before, after, calm.passes_clear)
    patches.observe(nn.Module, "zero_grad", before, wrap("loop", cleared_by_module), calm.passes)
    session.tracer.listen("loop", listen)


def _is_read_by_torch() -> bool:
    """Return whether it is torch that reads a gradient: to clip it, to clear it, to step."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(PACKAGE):
        frame = frame.f_back
    return frame is not None and frame.f_code.co_filename.startswith(_TORCH)


def patch_schedulers(session: Session, patches: Patches) -> None:
    """Observe learning rate schedulers.

    Not every class calls the constructor of its base, and some step others: what counts is the outermost call.
    """
    wrap = session.guard.wrap
    running: list[object] = []  # schedulers that are being constructed or stepped, the outermost first

    def begun(args: tuple[Any, ...], _kwargs: Any) -> None:
        running.append(args[0])

    def is_outermost(scheduler: object) -> bool:
        while running and running.pop() is not scheduler:
            pass  # what was begun inside it and raised
        return not running

    def made(args: tuple[Any, ...], _kwargs: Any, _result: Any) -> None:
        if is_outermost(args[0]) and (optimizer := _optimizer_of(args[0])) is not None:
            tracked = session.optimizers.get(optimizer)
            tracked.scheduler = type(args[0]).__name__
            tracked.scheduler_made = session.user.capture(1, skip_methods_of=args[0])

    def stepped(args: tuple[Any, ...], _kwargs: Any, _result: Any) -> None:
        if is_outermost(args[0]) and (optimizer := _optimizer_of(args[0])) is not None:
            tracked = session.optimizers.get(optimizer)
            tracked.scheduler_steps += 1
            if session.calm.left:
                return
            tracked.scheduler_stepped = session.user.capture(1, skip_methods_of=args[0])
            session.loop.scheduled(tracked, tracked.scheduler_stepped)

    for scheduler in _scheduler_classes():
        for name, after in (("__init__", made), ("step", stepped)):
            if name in scheduler.__dict__:
                patches.observe(scheduler, name, wrap("schedulers", begun), wrap("schedulers", after))


def _optimizer_of(scheduler: object) -> torch.optim.Optimizer | None:
    optimizer = getattr(scheduler, "optimizer", None)
    return optimizer if isinstance(optimizer, torch.optim.Optimizer) else None


def _scheduler_classes() -> list[type]:
    """Return torch's scheduler classes, each once: some have two names."""
    found = (value for value in vars(lr_scheduler).values() if isinstance(value, type))
    return list(dict.fromkeys(each for each in found if issubclass(each, lr_scheduler.LRScheduler)))
