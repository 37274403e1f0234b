"""The tracer: follows values from parameters to the loss, call by call, and tells where a gradient's path ends.

    flow = Dataflow(user, guard, journal, in_module, on_intermediate_grad_read, on_freeze)
    flow.patches(patches)           # for what a mode does not see
    flow.switch_on()
    ...                             # the program; before each backward pass: flow.note_backward(roots, inputs)
    flow.explain(model.encoder.weight)
    flow.forget()                   # after each step

It is a TorchFunctionMode: it sees every Python-level call of torch while it is on, and costs nothing while it is off.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import nn
from torch.overrides import TorchFunctionMode

from whygrad.model import PathEnd as PathKind
from whygrad.probe.dataflow import hooks
from whygrad.probe.dataflow.explain import Explanation
from whygrad.probe.dataflow.observer import PART, Listener, Observer, OnTensor
from whygrad.probe.dataflow.passes import note_pass
from whygrad.probe.dataflow.recorder import Use
from whygrad.probe.dataflow.result import Cut, PathEnd
from whygrad.probe.dataflow.stack import put_at_bottom, take_out, take_out_soon
from whygrad.probe.dataflow.window import Window, is_leaf
from whygrad.probe.guard import Guard
from whygrad.probe.journal import Journal
from whygrad.probe.patches import Patches, drop_own_frame
from whygrad.probe.source import Site, UserCode

MAX_KEPT = 10_000  # tensors that outlive their step

# In eval mode these take a fused path that gives other bits; torch leaves it when any torch function mode is on.
_FUSED_IN_EVAL = (nn.TransformerEncoder, nn.TransformerEncoderLayer, nn.MultiheadAttention)
_COMPILED = "OptimizedModule"  # torch.compile would take the mode into what it compiles


class Dataflow(TorchFunctionMode):
    """Watches torch calls between `switch_on` and `switch_off`.

    Args:
        user: Tells whose code is whose.
        guard: Takes the errors and the time of the tracer.
        journal: Notes who made and who wrote each tensor.
        in_module: Returns whether this thread is in a call of a module.
        on_intermediate_grad_read: Called when `.grad` of an intermediate that keeps none is read.
        on_freeze: Called when `requires_grad` of a tensor was switched off.
    """

    def __init__(
        self,
        user: UserCode,
        guard: Guard,
        journal: Journal,
        *,
        in_module: Callable[[], bool],
        on_intermediate_grad_read: OnTensor,
        on_freeze: OnTensor,
    ) -> None:
        super().__init__()
        self._guard = guard
        self._journal = journal
        self._observer = Observer(
            user,
            guard,
            journal,
            in_module=in_module,
            on_grad_read=on_intermediate_grad_read,
            on_freeze=on_freeze,
        )
        self._made: dict[int, tuple[weakref.ref[torch.Tensor], Site | None]] = {}  # of earlier steps
        self._explanation: tuple[int, Explanation] | None = None

    # -- on and off -------------------------------------------------------------------------------------------------

    @property
    def active(self) -> bool:
        """Return whether torch calls are watched."""
        return self._observer.active

    @property
    def paused(self) -> bool:
        """Return whether what is seen is not recorded for the moment: an optimizer computes, not the program."""
        return self._observer.paused

    @paused.setter
    def paused(self, paused: bool) -> None:
        self._observer.paused = paused

    def switch_on(self) -> None:
        """Start watching this thread's torch calls, and those of threads that start from now on."""
        if not self.active:
            self._observer.active = True
            self._observer.switches.forget()
            self._journal.resume()
            put_at_bottom(self)

    def switch_off(self) -> None:
        """Stop watching and forget everything.

        It may be called in another thread than `switch_on`: what is left there goes with that thread's next torch call,
        or with a later call of this function in it.
        """
        take_out(self)
        if self.active:
            self._observer.active = False
            self._drop_window()
            self._made.clear()

    def forget(self) -> None:
        """End a step: drop all that was seen in it, except where the intermediates were made that are still alive."""
        tensors = self._observer.window.tensors.alive()
        living = {id(t): (weakref.ref(t), node.spot.site) for t, node in tensors if not is_leaf(t)}
        kept = {key: entry for key, entry in self._made.items() if entry[0]() is not None}
        self._made = {**kept, **living} if len(kept) + len(living) <= MAX_KEPT else {}
        self._drop_window()

    def _drop_window(self) -> None:
        self._observer.recorder.window = Window(self._observer.spots)
        self._observer.recorder.frozen.forget_dead()
        self._explanation = None

    def patches(self, patches: Patches) -> None:
        """Patch what a mode does not see; the patches do nothing while the tracer is off."""
        hooks.install(self._observer, self, patches)

    def listen(self, part: str, listener: Listener) -> None:
        """Call a function with each torch call of traced steps, after it has returned.

        It runs with torch functions switched off and must keep no tensor alive beyond the step. An error of its own
        switches off its own part, and leaves the tracer alone.
        """
        self._observer.listeners.append(self._guard.apart(part, listener))

    # -- what it has seen -------------------------------------------------------------------------------------------

    @property
    def uses(self) -> dict[int, Use]:
        """Return how often each leaf was used, by id; assign an empty dict to start counting anew."""
        return self._observer.recorder.uses

    @uses.setter
    def uses(self, uses: dict[int, Use]) -> None:
        self._observer.recorder.uses = uses

    def note_backward(
        self, roots: Sequence[torch.Tensor], inputs: Sequence[torch.Tensor] | None = None, *, returns: bool = False
    ) -> None:
        """Note a backward pass that is about to run.

        Args:
            roots: What it is called on.
            inputs: The tensors it was asked for; None for all leaves.
            returns: It is a call of `autograd.grad`, which leaves `.grad` alone.
        """
        if self._observer.is_watching():
            spot, window = self._observer.spots.here(), self._observer.window
            self._guard.run(PART, lambda: note_pass(window, roots, inputs, spot, returns=returns))

    def explain(self, tensor: torch.Tensor) -> PathEnd:
        """Return where the path from a tensor to the loss ends, from what was seen since the last step."""
        return self._guard.run(PART, self._explain, tensor) or PathEnd(PathKind.UNKNOWN)

    def _explain(self, tensor: torch.Tensor) -> PathEnd:
        return self._explained().of(tensor, self._observer.recorder.frozen.get(tensor))

    def lost_terms(self) -> list[tuple[Cut, list[torch.Tensor]]]:
        """Return where terms of the loss lost their gradient, with the parameters nearest to each cut.

        The parameters may have a gradient all the same, from other terms.
        """
        return self._guard.run(PART, lambda: self._explained().lost_terms()) or []

    def _explained(self) -> Explanation:
        window = self._observer.window
        state = window.created + len(window.passes)
        if self._explanation is None or self._explanation[0] != state:
            self._explanation = (state, Explanation(window))
        return self._explanation[1]

    def made_at(self, tensor: torch.Tensor) -> Site | None:
        """Return the line that made an intermediate, if it was seen."""
        node = self._observer.window.tensors.get(tensor)
        if node is not None:
            return node.spot.site
        entry = self._made.get(id(tensor))
        return entry[1] if entry is not None and entry[0]() is tensor else None

    def release(self, tensor: torch.Tensor) -> None:
        """Drop all weak references to a tensor: `torch.utils.swap_tensors` refuses tensors that have one."""
        self._observer.window.release(tensor)
        self._observer.recorder.frozen.drop(tensor)
        self.uses.pop(id(tensor), None)
        self._made.pop(id(tensor), None)

    # -- calls ------------------------------------------------------------------------------------------------------

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        try:
            result = func(*args, **(kwargs or {}))
        except BaseException as error:
            drop_own_frame(error)
            raise
        if not (torch.compiler.is_compiling() or torch._C._get_tracing_state()):
            if self._observer.active:
                self._observer.call(func, args, kwargs or {}, result)
            else:  # a thread that has outlived the traced steps
                take_out_soon(self)
        return result

    def run(self, original: Callable[..., Any], module: nn.Module, args: tuple[Any, ...], kwargs: Any) -> Any:
        """Call a module, without the tracer where its presence would change what is computed or compiled."""
        aside = self._observer.active and needs_mode_aside(module) and take_out(self)
        try:
            result = original(module, *args, **kwargs)
        except BaseException as error:
            drop_own_frame(error)
            raise
        finally:
            if aside and self._observer.active:
                put_at_bottom(self)
                self._journal.resume()
        if self._observer.is_watching() and (aside or isinstance(module, torch.jit.ScriptModule)):
            self._observer.guarded(self._note_opaque, module, (args, kwargs), result, torch.is_grad_enabled())
        return result

    def _note_opaque(self, module: nn.Module, inputs: Any, result: Any, grad: bool) -> None:
        parameters = list(module.parameters())
        self._observer.recorder.opaque(type(module).__name__, inputs, parameters, result, grad)


def needs_mode_aside(module: nn.Module) -> bool:
    """Return whether a torch function mode would change what a module computes, or how it is compiled."""
    if isinstance(module, _FUSED_IN_EVAL):
        return not module.training
    return type(module).__name__ == _COMPILED
