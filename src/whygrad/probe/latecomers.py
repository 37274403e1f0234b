"""Optimizers that start late: the dense recording at the start of a run may be over before their first step."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from whygrad.probe.optimizers import TrackedOptimizer

_STEPS = 8  # of each optimizer, to be recorded
_WINDOWS = 32  # recorded for their sake in all: a program may make optimizers for ever


@dataclass(slots=True)
class Latecomers:
    """Counts the recorded steps of each optimizer."""

    _recorded: dict[int, int] = field(default_factory=dict)  # id of the optimizer -> steps
    _windows: int = 0

    def note_step(self, optimizer: TrackedOptimizer | None, *, recorded: bool) -> None:
        """Count a step that is done."""
        if optimizer is not None and recorded:
            self._recorded[optimizer.id] = self._recorded.get(optimizer.id, 0) + 1

    def want(self, optimizers: Iterable[TrackedOptimizer]) -> bool:
        """Return whether the next step is recorded although the budget says no."""
        if self._windows >= _WINDOWS:
            return False
        late = any(each.steps > 0 and self._recorded.get(each.id, 0) < _STEPS for each in optimizers)
        self._windows += late
        return late
