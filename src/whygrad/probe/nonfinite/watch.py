"""Watches what recorded steps compute for the first NaN or Inf, in forward call by call, in backward node by node.

Events that are noted here:

nonfinite: NaN or Inf that reached a loss (side "forward", or "data" where it came from outside) or the gradient of a
    leaf (side "backward"), at the line of the operation where it arose; the subject is that operation.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from threading import get_ident
from typing import TYPE_CHECKING, Any

import torch
from torch import nn
from torch.overrides import TorchFunctionMode

from whygrad.probe.dataflow.dataflow import needs_mode_aside
from whygrad.probe.dataflow.spots import Spots
from whygrad.probe.dataflow.stack import put_at_bottom, take_out, take_out_soon
from whygrad.probe.nonfinite.births import Births, Origin, Source, plain_name
from whygrad.probe.nonfinite.calls import Calls, Made
from whygrad.probe.nonfinite.finite import Finite
from whygrad.probe.nonfinite.passes import Found, Pass, watch_pass
from whygrad.probe.patches import drop_own_frame
from whygrad.probe.source import Site

if TYPE_CHECKING:
    from whygrad.probe.session import Session

PART = "search for NaN and Inf"
NONFINITE = "nonfinite"

_clock = time.perf_counter
_counter: Callable[[], int] = torch._C._autograd._get_sequence_nr
_NoTorchFunction: Any = torch._C.DisableTorchFunction
_ATTRIBUTES = frozenset({"__get__", "__set__", "__delete__"})
_SIDES = {
    Source.BORN: "forward",
    Source.MEANT: "forward",
    Source.ENTERED: "data",
    Source.INFINITE: "data",
}


class NonfiniteWatch(TorchFunctionMode):
    """Watches between `switch(on=True)` and `switch(on=False)`; one per session."""

    def __init__(self, session: Session) -> None:
        super().__init__()
        self._session = session
        self._spots = Spots(session.user)
        self._finite = Finite()
        self._births = Births(self._finite)
        self._calls = Calls()
        self._active = False
        self._thread = get_ident()
        self._last = 0  # autograd's counter after the last call
        self._pass: Pass | None = None

    def switch(self, *, on: bool) -> None:
        """Begin or cease to watch this thread."""
        if on and not self._active and PART not in self._session.guard.failures:
            self._active = True
            self._thread = get_ident()
            self._resume()
            put_at_bottom(self)
        elif not on:
            take_out(self)
            self._active = False
            self._births.clear()

    def run(self, original: Callable[..., Any], module: nn.Module, args: tuple[Any, ...], kwargs: Any) -> Any:
        """Call a module, without this mode where its presence would change what is computed or compiled."""
        aside = self._active and needs_mode_aside(module) and take_out(self)
        try:
            return self._session.tracer.run(original, module, args, kwargs)
        except BaseException as error:
            drop_own_frame(error)
            raise
        finally:
            if aside and self._active:
                put_at_bottom(self)
                self._resume()

    def _resume(self) -> None:
        """Leave the nodes that were made since the last call to no call."""
        self._last = _counter()
        self._calls.skip(self._last)

    # -- forward ----------------------------------------------------------------------------------------------------

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        try:
            result = func(*args, **(kwargs or {}))
        except BaseException as error:
            drop_own_frame(error)
            raise
        if self._active:
            if not torch.compiler.is_compiling() and not self._session.tracer.paused:
                self._guarded(self._look, func, args, kwargs or {}, result)
        else:
            take_out_soon(self)
        return result

    def _look(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> None:
        if get_ident() != self._thread or torch._C._current_graph_task_id() != -1:
            return
        if torch._C._functorch.peek_interpreter_stack() is not None or torch._C._len_torch_dispatch_stack():
            return  # what is computed stands for something else
        name = str(getattr(func, "__name__", ""))
        number = _counter()
        if number != self._last:
            self._last = number
            self._calls.note(number, Made(_called(func, name), self._spots.here().site))
        if name not in _ATTRIBUTES:
            self._births.call(name, args, kwargs, result, self._here)

    def _here(self) -> Site | None:
        return self._spots.here().site

    def _guarded(self, function: Callable[..., Any], *args: Any) -> None:
        """Call a function that only looks at tensors: as `Guard.run` does, at a fraction of its cost."""
        guard = self._session.guard
        if guard.inside or PART in guard.failures:
            return
        began = _clock()
        try:
            with _NoTorchFunction():
                function(*args)
        except Exception as error:
            guard.run(PART, _raise, error)
        finally:
            guard.own_s += _clock() - began

    # -- backward ---------------------------------------------------------------------------------------------------

    def before_backward(self, roots: Sequence[torch.Tensor]) -> None:
        """Look at what a backward pass starts from, and prepare to look at what it goes through."""
        if self._pass is not None:
            self._pass.close()
            self._pass = None
        if not self._active or torch._C._current_graph_task_id() != -1:
            return
        broken = next((root for root in roots if self._finite.is_broken(root)), None)
        if broken is None:
            self._pass = watch_pass(roots, self._finite, self._guarded)
        else:
            origin = self._births.of(broken)
            if origin is not None:
                self._note_forward(origin)

    def after_backward(self) -> None:
        """Note what a backward pass showed."""
        if self._pass is None or torch._C._current_graph_task_id() != -1:
            return
        watched, self._pass = self._pass, None
        watched.close()
        for found in watched.found:
            if found.leaves:
                self._note_backward(found)

    def _note_forward(self, origin: Origin) -> None:
        side = _SIDES.get(origin.source)
        if side is not None:
            self._note(
                origin.site,
                origin.operation,
                side=side,
                value="NaN" if origin.is_nan else "Inf",
                inputs=list(origin.inputs),
            )

    def _note_backward(self, found: Found) -> None:
        made = self._calls.of(found.number)
        self._note(
            None if made is None else made.site,
            found.node if made is None else made.operation,
            side="backward",
            value="NaN" if found.is_nan else "Inf",
            node=found.node,
        )

    def _note(self, site: Site | None, operation: str, **detail: Any) -> None:
        self._session.events.note(NONFINITE, self._session.training.steps, site, operation, **detail)


def _called(func: Any, name: str) -> str:
    """Return what the user calls a function: the attribute's name for a property."""
    if name in _ATTRIBUTES:
        return str(getattr(getattr(func, "__self__", None), "__name__", name))
    return plain_name(name)


def _raise(error: Exception) -> None:
    raise error
