"""Gradients over time: at the first and at the last step of what one forward pass goes through again and again."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch

from whygrad.model import Role
from whygrad.stats.rows import Rows

RECURRENT_CALLS = 4  # of a module, or steps of a sequence: fewer are no recurrence


@dataclass(slots=True)
class Recurrence:
    """What was called again and again since the last step."""

    calls: dict[int, int] = field(default_factory=dict)  # output id -> number of its last call, from 0
    sequences: dict[int, int] = field(default_factory=dict)  # output id -> dimension of time, where it enters an RNN
    _ends: dict[int, dict[int, int]] = field(default_factory=dict)  # output id -> first and last call -> its row
    _early: Rows = field(default_factory=Rows)
    _late: Rows = field(default_factory=Rows)

    def note_call(self, output: int) -> int:
        """Count a call and return its number."""
        call = self.calls[output] = self.calls.get(output, -1) + 1
        return call

    def note_gradient(self, output: int, call: int, gradient: torch.Tensor, row: int) -> None:
        """Keep the gradient of the first and of the last call, or that at both ends of a sequence.

        Args:
            output: Id of the output.
            call: Number of the call that returned it.
            gradient: Its gradient.
            row: Index of the gradient's statistics.
        """
        time = self.sequences.get(output) if self.sequences else None
        if time is None:
            if call in (0, self.calls.get(output)):
                self._ends.setdefault(output, {})[call] = row
        elif gradient.layout is torch.strided and gradient.dim() > time and gradient.shape[time] >= RECURRENT_CALLS:
            self._early.add(output, gradient.select(time, 0))
            self._late.add(output, gradient.select(time, -1))

    def rows(self, gradients: Rows) -> dict[Role, Rows]:
        """Return what was kept of outputs that came often enough; `gradients` has the rows of their gradients."""
        for output, last in self.calls.items():
            if last + 1 >= RECURRENT_CALLS:
                ends = self._ends.get(output, {})
                if 0 in ends and last in ends:
                    self._early.put(output, gradients.row(ends[0]))
                    self._late.put(output, gradients.row(ends[last]))
        return {Role.EARLY_GRADIENT: self._early, Role.LATE_GRADIENT: self._late}
