"""Receives what the mode and the patches see, decides whether it counts, and has it recorded."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from whygrad.probe.dataflow.arguments import Call
from whygrad.probe.dataflow.operations import Effect, Operation, Operations
from whygrad.probe.dataflow.recorder import Recorder
from whygrad.probe.dataflow.spots import Spot, Spots
from whygrad.probe.dataflow.switches import GradSwitches
from whygrad.probe.dataflow.window import Window, is_leaf
from whygrad.probe.guard import Guard
from whygrad.probe.journal import Journal
from whygrad.probe.source import Site, UserCode

PART = "tracer"  # its name where the guard reports failures

OnTensor = Callable[[torch.Tensor, Site | None], None]
Listener = Callable[[Callable[..., Any], Operation, Call, Callable[[], Site | None]], None]
"""Called with each torch call of a traced step: the function, its kind, its arguments and result, who asks where."""


class Observer:
    """One per session; its parts are shared by all threads, grad mode is followed in each."""

    def __init__(
        self,
        user: UserCode,
        guard: Guard,
        journal: Journal,
        *,
        in_module: Callable[[], bool],
        on_grad_read: OnTensor,
        on_freeze: OnTensor,
    ) -> None:
        self.active = False
        self.paused = False
        self.listeners: list[Listener] = []
        self.spots = Spots(user)
        self.switches = GradSwitches(self.spots, user)
        self.recorder = Recorder(self.spots, self.switches, in_module)
        self._guard = guard
        self._journal = journal
        self._operations = Operations()
        self._on_grad_read = on_grad_read
        self._on_freeze = on_freeze

    @property
    def window(self) -> Window:
        """Return what was seen since the last step."""
        return self.recorder.window

    def is_watching(self) -> bool:
        """Return whether what happens now is recorded."""
        return self.active and not self.paused and not torch.compiler.is_compiling()

    def guarded(self, function: Callable[..., Any], *args: Any) -> Any:
        """Call a function that only looks at tensors, under the guard."""
        return self._guard.look(PART, function, *args)

    def call(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> None:
        """Note a call of a torch function that has returned."""
        operation = self._operations.of(func)
        effect = operation.effect
        if effect is Effect.SWITCH:
            self.guarded(self.switches.note, bool(args[0]))
        elif effect is not Effect.READ and effect is not Effect.BACKWARD and not self.paused:
            self.guarded(self._note, func, operation, Call(args, kwargs, result), torch.is_grad_enabled())

    def _note(self, func: Any, operation: Operation, call: Call, grad: bool) -> None:
        spot: Spot | None = None

        def here() -> Site | None:
            nonlocal spot
            spot = spot or self.spots.here()
            return spot.site

        args, kwargs, result = call
        self._journal.observe(func, args, kwargs, result, here)
        effect = operation.effect
        if torch._C._functorch.peek_interpreter_stack() is not None:
            return  # tensors of torch.func stand for others
        if not grad and effect is not Effect.SET_GRAD and torch._C._current_graph_task_id() != -1:
            return  # backward itself; checkpointing runs forward again within it, with grad mode on
        self.recorder.call(operation, call, grad=grad, spot=spot)
        for listener in self.listeners:
            listener(func, operation, call, here)
        if effect is Effect.GET_GRAD and result is None and not is_leaf(args[0]):
            self._guard.run(PART, self._on_grad_read, args[0], self.spots.here().site)
        elif effect is Effect.SET_REQUIRES_GRAD and not args[0].requires_grad:
            self._guard.run(PART, self._on_freeze, args[0], self.spots.here().site)
