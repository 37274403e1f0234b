"""Watches what recorded steps compute for the first NaN or Inf, in forward call by call, in backward node by node.

Events that are noted here:

nonfinite-parameters: parameters were not finite any more, seen at a loss or when the program had ended; their ids.
nonfinite: NaN or Inf that reached a loss (side "forward", or "data" where it came from outside) or the gradient of a
    leaf (side "backward"), at the line of the operation where it arose; the subject is that operation.
"""

from __future__ import annotations

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
from whygrad.probe.nonfinite.custom import watch_functions
from whygrad.probe.nonfinite.finite import Finite, describe
from whygrad.probe.nonfinite.lookout import Lookout
from whygrad.probe.nonfinite.passes import Found, Pass, watch_pass
from whygrad.probe.nonfinite.search import Traced, inputs_of
from whygrad.probe.nonfinite.walk import Walk, walk
from whygrad.probe.patches import drop_own_frame
from whygrad.probe.source import Site

if TYPE_CHECKING:
    from whygrad.probe.session import Session

PART = "search for NaN and Inf"
NONFINITE = "nonfinite"
NONFINITE_PARAMETERS = "nonfinite-parameters"
LEARNT = 4  # watched steps from which is learnt how the program's graph looks like
LEARNT_EVERY = 12  # of those after

_counter: Callable[[], int] = torch._C._autograd._get_sequence_nr
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
        self._finite = Finite(anywhere=session.options.trace_all)
        self._births = Births(self._finite)
        self._calls = Calls()
        self._active = False
        self._thread = get_ident()
        self._last = 0  # autograd's counter after the last call
        self._pass: Pass | None = None
        self._graph: Walk | None = None  # of that pass, where its calls were not watched
        self._lookout = Lookout(self._finite)
        self._inside = False  # a function of the user's, in backward
        self._learning = False
        self._windows = 0

    def switch(self, *, on: bool) -> None:
        """Begin or cease to watch this thread; called at the beginning of each step."""
        self._windows += on
        self._learning = on and (self._windows <= LEARNT or self._windows % LEARNT_EVERY == 0)
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
        if self._active or self._inside:
            if not (self._session.tracer.paused or _stands_for_something_else()):
                self._guarded(self._look, func, args, kwargs or {}, result)
        else:
            take_out_soon(self)
        return result

    def _look(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> None:
        if get_ident() != self._thread or (torch._C._current_graph_task_id() != -1 and not self._inside):
            return
        if torch._C._functorch.peek_interpreter_stack() is not None:
            return  # what is computed stands for something else
        name = str(getattr(func, "__name__", ""))
        number = _counter()
        with_graph = number != self._last
        if with_graph or self._learning:
            made = Made(_called(func, name), self._spots.here().site)
            if with_graph:
                self._last = number
                self._calls.note(number, made)
            if self._learning:
                self._lookout.constants.call(made, (args, kwargs), result, with_graph=with_graph)
        if name not in _ATTRIBUTES:
            self._births.call(name, args, kwargs, result, self._here)

    def _here(self) -> Site | None:
        return self._spots.here().site

    def _guarded(self, function: Callable[..., Any], *args: Any) -> None:
        """Call a function that only looks at tensors, under the guard."""
        self._session.guard.look(PART, function, *args)

    # -- backward ---------------------------------------------------------------------------------------------------

    def before_backward(self, roots: Sequence[torch.Tensor]) -> None:
        """Look at what a backward pass starts from, and prepare to look at what it goes through."""
        if torch._C._current_graph_task_id() != -1:
            return
        self._close_pass()
        if PART not in self._session.guard.failures:
            self._session.guard.run(PART, self._before_watched if self._active else self._before_unwatched, roots)

    def look_at_loss(self) -> Callable[[torch.Tensor], bool] | None:
        """Return what looks at a loss in steps that are passed over; None where nothing in its graph can break.

        It tells whether the backward pass that is about to run is watched.
        """
        if not self._lookout.pace.is_risky or PART in self._session.guard.failures:
            return None

        def look(loss: torch.Tensor) -> bool:
            self.before_backward((loss,))
            return self._pass is not None

        return look

    def after_backward(self) -> None:
        """Note what a backward pass showed."""
        if torch._C._current_graph_task_id() == -1:
            self._session.guard.run(PART, self._close_pass)

    def _before_watched(self, roots: Sequence[torch.Tensor]) -> None:
        broken = next((root for root in roots if self._finite.is_broken(root)), None)
        if broken is not None:
            origin = self._births.of(broken)
            if origin is not None:
                self._note_forward(origin)
            return
        graph = walk(roots)
        if graph is None:
            return
        self._watch_pass(graph)
        if self._learning:
            self._lookout.lines.learn(graph, self._calls.of)

    def _before_unwatched(self, roots: Sequence[torch.Tensor]) -> None:
        if self._session.training.windows.compiled or self._lookout.is_over:
            return
        if any(self._finite.is_broken(root) for root in roots):
            traced, made = self._lookout.search(roots)
            if traced.old:
                self._note_parameters(set(traced.old))
            else:
                self._note_searched(traced, made, is_nan=any(self._finite.has_nan(root) for root in roots))
            return
        self._graph = self._lookout.singular(roots)
        if self._graph is not None:
            self._watch_pass(self._graph)

    def _watch_pass(self, graph: Walk) -> None:
        self._pass = watch_pass(graph, self._births, self._guarded)
        watch_functions(graph, self._pass, self, self._session.user, self._go_inside)

    def _go_inside(self, inside: bool) -> bool:
        """Note that backward enters or leaves a function of the user's; return whether it is in this thread."""
        mine = get_ident() == self._thread and PART not in self._session.guard.failures
        self._inside = inside and mine
        return mine

    def _close_pass(self) -> None:
        watched, self._pass = self._pass, None
        graph, self._graph = self._graph, None
        self._inside = False
        if watched is None:
            return
        watched.close()
        fatal = [found for found in watched.found if found.leaves]
        for found in fatal:
            made = self._calls.of(found.number) if graph is None else self._lookout.lines.of(graph, found.index)
            if found.origin is not None:
                made = Made(found.origin.operation, found.origin.site)
            self._note_backward(found, made, is_watched=graph is None)
        if graph is not None:
            self._lookout.pace.note_pass(found=bool(fatal))

    # -- facts ------------------------------------------------------------------------------------------------------

    def finish(self) -> None:
        """Note the parameters that were taught and are not finite at the end, as far as they are still there."""
        tensors = (entry.ref() for entry in self._session.parameters.alive() if entry.gradient_steps)
        self._note_parameters({id(t) for t in tensors if t is not None and self._finite.is_broken(t)})

    def _note_parameters(self, ids: set[int]) -> None:
        broken = [entry.id for entry in self._session.parameters.alive() if id(entry.ref()) in ids]
        if broken:
            steps = self._session.training.steps
            self._session.events.note(NONFINITE_PARAMETERS, steps, None, parameters=broken)

    def _note_forward(self, origin: Origin) -> None:
        side = _SIDES.get(origin.source)
        if side is not None:
            value, inputs = "NaN" if origin.is_nan else "Inf", list(origin.inputs)
            self._note(origin.site, origin.operation, side=side, value=value, inputs=inputs, is_watched=True)

    def _note_searched(self, traced: Traced, made: Made | None, *, is_nan: bool) -> None:
        inputs = [describe(tensor) for tensor in inputs_of(traced.values)]
        site, operation = (None, "") if made is None else (made.site, made.operation)
        value = "NaN" if is_nan else "Inf"
        side = "data" if traced.is_given else "forward"
        self._note(site, operation, side=side, value=value, inputs=inputs, is_watched=False)

    def _note_backward(self, found: Found, made: Made | None, *, is_watched: bool) -> None:
        site, operation = (None, found.node) if made is None else (made.site, made.operation)
        value = "NaN" if found.is_nan else "Inf"
        self._note(site, operation, side="backward", value=value, inputs=[], is_watched=is_watched)

    def _note(self, site: Site | None, operation: str, **detail: Any) -> None:
        self._session.events.note(NONFINITE, self._session.training.steps, site, operation, **detail)


def _stands_for_something_else() -> bool:
    """Return whether what is computed is being compiled, traced, or looked at by a mode of the program's."""
    compiling = torch.compiler.is_compiling() or torch._C._get_tracing_state() is not None
    return compiling or torch._C._len_torch_dispatch_stack() > 0


def _called(func: Any, name: str) -> str:
    """Return what the user calls a function: the attribute's name for a property."""
    if name in _ATTRIBUTES:
        return str(getattr(getattr(func, "__self__", None), "__name__", name))
    return plain_name(name)
