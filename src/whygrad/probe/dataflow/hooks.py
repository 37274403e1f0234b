"""Patches for what a torch function mode does not see.

`autograd.Function.apply`, `nn.Parameter(...)`, `torch.from_numpy`, entering `torch.inference_mode`, and new threads,
whose stack of modes starts empty.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from concurrent.futures import thread as pool
from typing import Any

import torch
from torch import nn
from torch.overrides import TorchFunctionMode
from torch.utils.checkpoint import CheckpointFunction

from whygrad.probe.dataflow.arguments import Call
from whygrad.probe.dataflow.nodes import Node
from whygrad.probe.dataflow.observer import Observer
from whygrad.probe.dataflow.operations import FROM_NUMPY, PARAMETER, Operation
from whygrad.probe.dataflow.stack import put_at_bottom, take_out
from whygrad.probe.dataflow.switches import Switch
from whygrad.probe.patches import Patches, drop_own_frame, observed


def install(observer: Observer, mode: TorchFunctionMode, patches: Patches) -> None:
    """Put the patches in."""
    _watch_functions(observer, patches)
    _watch_recomputation(observer, mode, patches)
    _watch_copies(observer, patches)
    _watch_inference_mode(observer, patches)
    _watch_threads(observer, mode, patches)


def _watch_functions(observer: Observer, patches: Patches) -> None:
    original = torch.autograd.Function.__dict__["apply"].__func__

    def entered(cls: type) -> tuple[Switch, Switch | None, bool]:
        return *observer.switches.enter_function(cls.__name__), torch.is_grad_enabled()

    def left(cls: type, args: Any, kwargs: Any, result: Any, state: tuple[Switch, Switch | None, bool]) -> None:
        switch, before, grad = state
        observer.switches.leave(before)
        if result is _FAILED or torch._C._functorch.peek_interpreter_stack() is not None:
            return
        backward = getattr(getattr(cls, "backward", None), "__code__", None)
        node = observer.recorder.custom(cls.__name__, (args, kwargs), result, switch.spot, grad=grad, backward=backward)
        if node is not None:
            switch.result, switch.replayed = node, cls is CheckpointFunction
            _watch_backward(observer, node, result)

    def apply(cls: type, *args: Any, **kwargs: Any) -> Any:
        state = observer.guarded(entered, cls) if observer.is_watching() else None
        result: Any = _FAILED
        try:
            result = original(cls, *args, **kwargs)
        except BaseException as error:
            drop_own_frame(error)
            raise
        finally:
            if state is not None:
                observer.guarded(left, cls, args, kwargs, result, state)
        return result

    patches.replace(torch.autograd.Function, "apply", classmethod(apply))


def _watch_recomputation(observer: Observer, mode: TorchFunctionMode, patches: Patches) -> None:
    """Watch the forward that reentrant checkpointing runs within backward: the mode is not on there."""
    original: Callable[..., Any] = CheckpointFunction.backward

    def backward(ctx: Any, *gradients: Any) -> Any:
        if not observer.is_watching():
            return original(ctx, *gradients)
        put_at_bottom(mode)
        try:
            return original(ctx, *gradients)
        except BaseException as error:
            drop_own_frame(error)
            raise
        finally:
            take_out(mode)

    patches.replace(CheckpointFunction, "backward", staticmethod(backward))


_FAILED = object()


def _watch_backward(observer: Observer, node: Node, result: Any) -> None:
    """Note when the backward of an autograd.Function gives no gradient to an input that needs one."""
    outputs = result if isinstance(result, tuple | list) else (result,)
    function = next((t.grad_fn for t in outputs if isinstance(t, torch.Tensor) and t.grad_fn is not None), None)
    if function is None:
        return
    needed = tuple(parent is not None for parent, _ in function.next_functions)  # the hook must not hold the graph

    def look(given: tuple[Any, ...], received: tuple[Any, ...]) -> None:
        if any(_is_something(gradient) for gradient in received):
            owed = [gradient for gradient, wanted in zip(given, needed, strict=False) if wanted]
            node.gave_nothing |= any(g is None for g in owed) or not any(map(_is_something, owed))

    def hook(given: tuple[Any, ...], received: tuple[Any, ...]) -> None:
        observer.guarded(look, given, received)

    function.register_hook(hook)


def _is_something(gradient: torch.Tensor | None) -> bool:
    """Return whether a gradient is more than None and zeros. Nobody looks on an accelerator: it would have to wait."""
    if gradient is None:
        return False
    readable = gradient.device.type == "cpu" and gradient.layout is torch.strided and type(gradient) is torch.Tensor
    return not readable or bool(gradient.any())


def _watch_copies(observer: Observer, patches: Patches) -> None:
    def copied(operation: Operation) -> Callable[[tuple[Any, ...], dict[str, Any], Any], None]:
        def record(args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> None:
            observer.recorder.call(operation, Call(args, kwargs, result), grad=True)
            for listener in observer.listeners:
                listener(torch.from_numpy, operation, Call(args, kwargs, result), lambda: observer.spots.here().site)

        def after(args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> None:
            if observer.is_watching():
                observer.guarded(record, args, kwargs, result)

        return after

    wrapped = observed(nn.Parameter.__new__, after=copied(PARAMETER))
    patches.replace(nn.Parameter, "__new__", staticmethod(wrapped))
    patches.observe(torch, "from_numpy", after=copied(FROM_NUMPY))


def _watch_inference_mode(observer: Observer, patches: Patches) -> None:
    mode = torch.inference_mode
    before: dict[int, Switch | None] = {}

    def entering(args: tuple[Any, ...], _kwargs: Any) -> None:
        if observer.active and args[0].mode:
            before[id(args[0])] = observer.switches.enter(observer.switches.here("inference_mode"))

    def leaving(args: tuple[Any, ...], _kwargs: Any) -> None:
        if id(args[0]) in before:
            observer.switches.leave(before.pop(id(args[0])))

    def guarded(function: Callable[..., None]) -> Callable[..., None]:
        def call(*args: Any) -> None:
            observer.guarded(function, *args)

        return call

    patches.observe(mode, "__enter__", before=guarded(entering))
    patches.observe(mode, "__exit__", before=guarded(leaving))


def _watch_threads(observer: Observer, mode: TorchFunctionMode, patches: Patches) -> None:
    """Let threads that start while the tracer is on be watched: torch.nn.parallel computes in such threads.

    The workers of a thread pool live on, so there each task is watched by itself.
    """

    def watching(original: Callable[..., Any], skipped: Callable[[Any], bool]) -> Callable[..., Any]:
        @functools.wraps(original)
        def run(self: Any, *args: Any) -> Any:
            if not observer.active or skipped(self):
                return original(self, *args)
            put_at_bottom(mode)
            try:
                return original(self, *args)
            finally:
                take_out(mode)

        return run

    def is_pool_worker(thread: threading.Thread) -> bool:
        return getattr(thread, "_target", None) is getattr(pool, "_worker", None)

    thread: Any = threading.Thread
    item: Any = pool._WorkItem
    patches.replace(thread, "_bootstrap_inner", watching(thread._bootstrap_inner, is_pool_worker))
    patches.replace(item, "run", watching(item.run, lambda _: False))
