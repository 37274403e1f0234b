"""One recorded step: statistics of gradients, weights, updates and outputs, on their way to the run file."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import torch

from whygrad.model import STATISTICS, Role
from whygrad.probe.gradient_norm import Norms
from whygrad.probe.optimizers import TrackedOptimizer
from whygrad.probe.parameters import Tracked
from whygrad.probe.recurrence import Row
from whygrad.runfile.writer import RunWriter
from whygrad.stats.accumulator import RunningTotals, merge_rows
from whygrad.stats.changes import Samples
from whygrad.stats.kernel import measure, pack, pack_counts
from whygrad.stats.library import library
from whygrad.stats.silence import mark_rows

Pairs = Sequence[tuple[Tracked, torch.Tensor]]

_GONE = torch.empty(0, device="cpu")
_LARGE = 65_536  # elements
_ROWS_EVERY = 4  # where there is no compiled kernel, large tensors are checked for silent rows at every fourth step
_SUM_SQUARES = STATISTICS.index("sum_squares")


@dataclass(slots=True)
class Before:
    """The parameters before a step: a bounded sample of each."""

    entries: list[Tracked]
    samples: Samples


@dataclass(slots=True)
class Recorder:
    """Turns tensors into matrices; one per session."""

    writer: RunWriter
    refused: set[str]  # filled with what could not be measured
    totals: RunningTotals = field(default_factory=RunningTotals)
    norms: dict[Role, float] = field(default_factory=dict)  # of the last step stored in each role
    _recorded: int = 0
    _before: Before | None = None
    _all_alive: set[int] = field(default_factory=set)  # parameters of which every row had a gradient

    def gradients(self, step: int, entries: Sequence[Tracked]) -> None:
        """Record gradients and weights of a step that is about to be made, and keep a sample of the weights."""
        self._recorded += 1
        self.norms.clear()
        pairs = [(entry, tensor) for entry in entries if (tensor := entry.ref()) is not None]
        with_gradient = [(entry, gradient) for entry, tensor in pairs if (gradient := tensor.grad) is not None]
        for entry, gradient in self._write(step, Role.GRADIENT, with_gradient, histograms=True):
            self._note_rows(entry, gradient)
        plain = self._write(step, Role.WEIGHT, pairs)
        self._before = Before([entry for entry, _ in plain], Samples([tensor for _, tensor in plain]))

    def backward_norms(self, step: int, norms: Norms | None) -> None:
        """Record the gradients as backward left them: beside those of the step, they show what came in between."""
        if norms is not None:
            self._store(step, Role.BACKWARD, norms.ids, norms.matrix())

    def updates(self, step: int) -> None:
        """Record what the step changed, against the samples taken before it."""
        before, self._before = self._before, None
        if before is not None and before.entries:
            after = [_GONE if (tensor := entry.ref()) is None else tensor for entry in before.entries]
            self._store(step, Role.UPDATE, [entry.id for entry in before.entries], before.samples.updates(after))

    def outputs(self, step: int, rows: dict[Role, list[Row]]) -> None:
        """Record what modules returned, and its gradients, since the last step."""
        for role, found in rows.items():
            if found:
                ids, matrix = [i for i, _ in found], torch.stack([r.cpu() for _, r in found])
                if len(set(ids)) < len(ids):
                    ids, matrix = merge_rows(ids, matrix)
                self._store(step, role, ids, matrix)

    def drop_samples(self) -> None:
        """Forget the weights kept for a step that will not be finished."""
        self._before = None

    def _write(self, step: int, role: Role, pairs: Pairs, *, histograms: bool = False) -> Pairs:
        """Record tensors in one role, and return those that could be measured."""
        found = measure([tensor for _, tensor in pairs], histograms=histograms)
        self.refused.update(found.refused.values())
        kept = [index for index in range(len(pairs)) if index not in found.refused] if found.refused else None
        chosen = pairs if kept is None else [pairs[index] for index in kept]
        if chosen:
            ids = [entry.id for entry, _ in chosen]
            self._store(step, role, ids, found.matrix if kept is None else found.matrix[kept])
            if found.histograms is not None:
                counts = found.histograms if kept is None else found.histograms[kept]
                self.writer.add_histogram(step, role, ids, pack_counts(counts))
        return chosen

    def _store(self, step: int, role: Role, ids: Sequence[int], matrix: torch.Tensor) -> None:
        self.totals.add(role, step, ids, matrix)
        self.norms[role] = float(matrix[:, _SUM_SQUARES].sum()) ** 0.5
        self.writer.add_matrix(step, role, ids, pack(matrix))

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
