"""One recorded step: statistics of gradients, weights, updates and outputs, on their way to the run file."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import torch

from whygrad.model import STATISTICS, Role
from whygrad.probe.optimizers import TrackedOptimizer
from whygrad.probe.outputs import Row
from whygrad.probe.parameters import Tracked
from whygrad.runfile.writer import RunWriter
from whygrad.stats.accumulator import RunningTotals, merge_rows
from whygrad.stats.histogram import size_histogram
from whygrad.stats.kernel import (
    many_statistics,
    many_updates,
    pack,
    pack_counts,
    refusal,
    rows_with_gradient,
    sample_view,
)

_ROWS_EVERY = 4  # large tensors are checked for silent rows at every fourth recorded step
_SMALL = 65_536
_SUM_SQUARES = STATISTICS.index("sum_squares")


@dataclass(slots=True)
class Before:
    """A parameter's value before its step: a bounded sample."""

    entry: Tracked
    sample: torch.Tensor


@dataclass(slots=True)
class Recorder:
    """Turns tensors into matrices; one per session."""

    writer: RunWriter
    refused: set[str]  # filled with what could not be measured
    totals: RunningTotals = field(default_factory=RunningTotals)
    norms: dict[Role, float] = field(default_factory=dict)  # of the last step stored in each role
    _recorded: int = 0
    _before: list[Before] = field(default_factory=list)

    def gradients(self, step: int, entries: Sequence[Tracked]) -> None:
        """Record gradients and weights of a step that is about to be made, and keep a sample of the weights."""
        self._recorded += 1
        self.norms.clear()
        pairs = [(entry, tensor) for entry in entries if (tensor := entry.ref()) is not None]
        with_gradient = [(e, p.grad) for e, p in pairs if p.grad is not None and self._measurable(p.grad)]
        self._write(step, Role.GRADIENT, [e.id for e, _ in with_gradient], [g for _, g in with_gradient])
        self._histograms(step, with_gradient)
        for entry, gradient in with_gradient:
            self._note_rows(entry, gradient)
        plain = [(e, _local(p.detach())) for e, p in pairs if self._measurable(p)]
        self._write(step, Role.WEIGHT, [e.id for e, _ in plain], [p for _, p in plain])
        self._before = [Before(e, sample_view(p).clone()) for e, p in plain]

    def updates(self, step: int) -> None:
        """Record what the step changed, against the samples taken before it."""
        before, self._before = self._before, []
        pairs = [
            (item.entry.id, item.sample, sample_view(_local(tensor.detach())))
            for item in before
            if (tensor := item.entry.ref()) is not None
        ]
        same = [(number, old, new) for number, old, new in pairs if old.shape == new.shape]
        if same:
            matrix = many_updates([old for _, old, _ in same], [new for _, _, new in same])
            self._store(step, Role.UPDATE, [number for number, _, _ in same], matrix)

    def outputs(self, step: int, rows: dict[Role, list[Row]]) -> None:
        """Record what modules returned, and its gradients, since the last step."""
        for role, found in rows.items():
            if found:
                ids, matrix = merge_rows([i for i, _ in found], torch.stack([r.cpu() for _, r in found]))
                self._store(step, role, ids, matrix)

    def drop_samples(self) -> None:
        """Forget the weights kept for a step that will not be finished."""
        self._before = []

    def _measurable(self, tensor: torch.Tensor) -> bool:
        why = refusal(tensor)
        if why is not None:
            self.refused.add(why)
        return why is None

    def _write(self, step: int, role: Role, ids: list[int], tensors: list[torch.Tensor]) -> None:
        if ids:
            self._store(step, role, ids, many_statistics(tensors))

    def _store(self, step: int, role: Role, ids: Sequence[int], matrix: torch.Tensor) -> None:
        self.totals.add(role, step, ids, matrix)
        self.norms[role] = float(matrix[:, _SUM_SQUARES].sum()) ** 0.5
        self.writer.add_matrix(step, role, ids, pack(matrix))

    def _histograms(self, step: int, gradients: Sequence[tuple[Tracked, torch.Tensor]]) -> None:
        if gradients:
            counts = torch.stack([size_histogram(g, _SMALL).cpu() for _, g in gradients])
            self.writer.add_histogram(step, Role.GRADIENT, [e.id for e, _ in gradients], pack_counts(counts))

    def _note_rows(self, entry: Tracked, gradient: torch.Tensor) -> None:
        if gradient.dim() < 2 or (gradient.numel() > _SMALL and self._recorded % _ROWS_EVERY):
            return
        alive = rows_with_gradient(gradient)
        if entry.rows_alive is None or entry.rows_alive.shape != alive.shape:
            entry.rows_alive = alive
        else:
            entry.rows_alive |= alive


def _local(tensor: torch.Tensor) -> torch.Tensor:
    """Return this rank's part of a distributed tensor: the probe never communicates."""
    local = getattr(tensor, "_local_tensor", None)
    return local if isinstance(local, torch.Tensor) else tensor


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
