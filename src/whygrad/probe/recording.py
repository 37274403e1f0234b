"""One recorded step: statistics of gradients, weights, updates and outputs, on their way to the run file."""

# S = statistics, T = tensors

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import torch

from whygrad.model import Role
from whygrad.probe.arrivals import Arrivals
from whygrad.probe.gradient_norm import Norms
from whygrad.probe.optimizers import TrackedOptimizer
from whygrad.probe.parameters import Tracked
from whygrad.stats.accelerator.samples import Samples
from whygrad.stats.kernel import Measured
from whygrad.stats.library import library
from whygrad.stats.pending import Chosen, Pending, Settled
from whygrad.stats.rows import Rows
from whygrad.stats.silence import mark_rows

Pairs = Sequence[tuple[Tracked, torch.Tensor]]

_GONE = torch.empty(0, device="cpu")
_LARGE = 65_536  # elements
_ROWS_EVERY = 4  # where there is no compiled kernel, large tensors are checked for silent rows at every fourth step


class Written(NamedTuple):
    """What could be measured of some tensors."""

    pairs: Pairs
    pending: Pending  # a row for each of them
    table: array[int] | None  # see `stats.kernel.Measured`


@dataclass(slots=True)
class Before:
    """The parameters before a step: a bounded sample of each."""

    entries: list[Tracked]
    samples: Samples


@dataclass(slots=True)
class Recorder:
    """Turns tensors into matrices; one per session."""

    refused: set[str]  # filled with what could not be measured
    arrivals: Arrivals
    _recorded: int = 0
    _before: Before | None = None
    _all_alive: set[int] = field(default_factory=set)  # parameters of which every row had a gradient

    def gradients(self, step: int, entries: Sequence[Tracked], left: Norms | None = None) -> bool:
        """Record gradients and weights of a step that is about to be made, and keep a sample of the weights.

        Args:
            step: Its number.
            entries: The parameters.
            left: The gradients as backward left them, where that was looked at: beside those of the step, they show
                what came in between.

        Returns:
            Whether they are known to be the same.
        """
        self._recorded += 1
        pairs = [(entry, tensor) for entry in entries if (tensor := entry.ref()) is not None]
        with_gradient = [(entry, gradient) for entry, tensor in pairs if (gradient := tensor.grad) is not None]
        found = self._write(step, Role.GRADIENT, with_gradient, histograms=True)
        for entry, gradient in found.pairs:
            self._note_rows(entry, gradient)
        weights = self._write(step, Role.WEIGHT, pairs)
        samples = Samples([tensor for _, tensor in weights.pairs], self.arrivals.accelerators, weights.table)
        self._before = Before([entry for entry, _ in weights.pairs], samples)
        if left is None or not found.pending.is_ready():
            return False
        same = left.is_same_as([entry.id for entry, _ in found.pairs], found.pending.read().matrix)
        if not same:
            self.arrivals.add(step, Role.BACKWARD, left.ids, Settled(Measured(left.matrix, None, {})))
        return same

    def updates(self, step: int) -> None:
        """Record what the step changed, against the samples taken before it."""
        before, self._before = self._before, None
        if before is not None and before.entries:
            after = [_GONE if (tensor := entry.ref()) is None else tensor for entry in before.entries]
            ids = [entry.id for entry in before.entries]
            self.arrivals.add(step, Role.UPDATE, ids, before.samples.updates(after))

    def outputs(self, step: int, rows: Mapping[Role, Rows]) -> None:
        """Record what modules returned, and its gradients, since the last step."""
        for role, found in rows.items():
            self.arrivals.add(step, role, found.ids, self.arrivals.accelerators.begin_rows(*found.parts()))

    def drop_samples(self) -> None:
        """Forget the weights kept for a step that will not be finished."""
        self._before = None

    def _write(self, step: int, role: Role, pairs: Pairs, *, histograms: bool = False) -> Written:
        """Record tensors in one role."""
        pending = self.arrivals.accelerators.begin([tensor for _, tensor in pairs], histograms=histograms)
        table = pending.measured.table if isinstance(pending, Settled) else None
        if pending.refused:
            self.refused.update(pending.refused.values())
            kept = [index for index in range(len(pairs)) if index not in pending.refused]
            pairs, pending = [pairs[index] for index in kept], Chosen(pending, kept)
        if pairs:
            self.arrivals.add(step, role, [entry.id for entry, _ in pairs], pending)
        return Written(pairs, pending, table)

    def _note_rows(self, entry: Tracked, gradient: torch.Tensor) -> None:
        if entry.id in self._all_alive or gradient.dim() < 2:
            return
        if library() is None and gradient.numel() > _LARGE and self._recorded % _ROWS_EVERY:
            return
        entry.rows_alive, every = mark_rows(gradient, entry.rows_alive)
        if every:
            self._all_alive.add(entry.id)


def measured(entries: Iterable[Tracked], optimizer: TrackedOptimizer | None) -> list[Tracked]:
    """Return what a step records: what its optimizer holds, and what no optimizer holds but has a gradient."""
    chosen = []
    for entry in entries:
        tensor = entry.ref()
        if tensor is None:
            continue
        held = optimizer is not None and optimizer.id in entry.optimizers
        if held or (not entry.optimizers and tensor.grad is not None):
            chosen.append(entry)
    return chosen
