"""Gradients over time: at the first and at the last step of what one forward pass goes through again and again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import torch

from whygrad.model import Role
from whygrad.stats.kernel import tensor_statistics

RECURRENT_CALLS = 4  # of a module, or steps of a sequence: fewer are no recurrence
Row = tuple[int, torch.Tensor]  # id of the output, its statistics (8,)


@dataclass(slots=True)
class Recurrence:
    """What was called again and again since the last step."""

    calls: dict[int, int] = field(default_factory=dict)  # output id -> number of its last call, from 0
    sequences: dict[int, int] = field(default_factory=dict)  # output id -> dimension of time, where it enters an RNN
    _ends: dict[int, dict[int, torch.Tensor]] = field(default_factory=dict)  # output id -> first and last call -> row
    _rows: list[tuple[Role, Row]] = field(default_factory=list)

    def note_call(self, output: int) -> int:
        """Count a call and return its number."""
        call = self.calls[output] = self.calls.get(output, -1) + 1
        return call

    def note_gradient(self, output: int, call: int, gradient: torch.Tensor, row: torch.Tensor) -> None:
        """Keep the gradient of the first and of the last call, or that at both ends of a sequence."""
        time = self.sequences.get(output)
        if time is None:
            if call in (0, self.calls.get(output)):
                self._ends.setdefault(output, {})[call] = row
        elif gradient.layout is torch.strided and gradient.dim() > time and gradient.shape[time] >= RECURRENT_CALLS:
            for role, step in ((Role.EARLY_GRADIENT, 0), (Role.LATE_GRADIENT, -1)):
                self._rows.append((role, (output, tensor_statistics(gradient.select(time, step)))))

    def rows(self) -> Iterator[tuple[Role, Row]]:
        """Yield what was kept of outputs that came often enough."""
        yield from self._rows
        for output, last in self.calls.items():
            ends = self._ends.get(output, {})
            if last + 1 >= RECURRENT_CALLS and 0 in ends and last in ends:
                yield Role.EARLY_GRADIENT, (output, ends[0])
                yield Role.LATE_GRADIENT, (output, ends[last])
