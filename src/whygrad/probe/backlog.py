"""What recorded steps measured and nobody has looked at yet.

A step only puts its matrices here. Adding them up, taking their norms and turning them into bytes is done for many
steps at once: alone, each of that costs as much as measuring a small model.
"""

# K = steps, S = statistics, T = tensors

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import torch

from whygrad.model import STATISTICS, Role, Step
from whygrad.runfile.writer import RunWriter
from whygrad.stats.accumulator import RunningTotals, merge_rows
from whygrad.stats.kernel import pack, pack_counts

MOST_MATRICES = 512  # that wait
MOST_ROWS = 65_536  # of them: 4 MB
MOST_STEPS = 4096

_SUM_SQUARES = STATISTICS.index("sum_squares")
_NORMS = (Role.GRADIENT, Role.WEIGHT, Role.UPDATE)  # that a step holds


class _Matrix(NamedTuple):
    """One role at one step."""

    step: int
    values: torch.Tensor  # float64 [T, S]
    histograms: torch.Tensor | None  # int32 [T, B]


@dataclass(slots=True)
class Backlog:
    """Matrices and steps on their way to the run file; one per session."""

    writer: RunWriter
    totals: RunningTotals = field(default_factory=RunningTotals)
    _matrices: dict[tuple[Role, tuple[int, ...]], list[_Matrix]] = field(default_factory=dict)  # by what the rows are
    _steps: list[Step] = field(default_factory=list)
    _waiting: int = 0  # matrices
    _rows: int = 0

    def add(
        self, step: int, role: Role, ids: Sequence[int], matrix: torch.Tensor, histograms: torch.Tensor | None = None
    ) -> None:
        """Add the statistics of one role at one step.

        Args:
            step: Number of the step.
            role: What the statistics describe.
            ids: Id of each row, [T]; an output that was called several times has several rows.
            matrix: float64 [T, S] on the CPU.
            histograms: int32 [T, B] on the CPU.
        """
        self._matrices.setdefault((role, tuple(ids)), []).append(_Matrix(step, matrix, histograms))
        self._waiting += 1
        self._rows += len(ids)

    def add_step(self, step: Step) -> None:
        """Add a step; the norms over its gradients, weights and updates are filled in from its matrices."""
        self._steps.append(step)
        if self._waiting >= MOST_MATRICES or self._rows >= MOST_ROWS or len(self._steps) >= MOST_STEPS:
            self.settle()

    def settle(self) -> None:
        """Hand everything over to the writer."""
        norms: dict[tuple[int, Role], float] = {}
        try:
            while self._matrices:
                role, ids = next(iter(self._matrices))
                found = self._matrices.pop((role, ids))  # one after the other: an error keeps the others
                found_norms = self._settle(role, ids, found)
                if role in _NORMS:
                    norms.update({(each.step, role): norm for each, norm in zip(found, found_norms, strict=True)})
        finally:
            steps, self._steps = self._steps, []
            self._waiting = sum(map(len, self._matrices.values()))
            self._rows = sum(len(ids) * len(found) for (_, ids), found in self._matrices.items())
            for step in steps:
                self.writer.add_step(_completed(step, norms) if step.recorded else step)

    def _settle(self, role: Role, ids: tuple[int, ...], found: Sequence[_Matrix]) -> list[float]:
        """Add up and store the matrices of one role that have the same rows; return the norm at each step, [K]."""
        stacked = torch.stack([each.values for each in found])
        rows: Sequence[int] = ids
        if len(set(ids)) < len(ids):
            merged = [merge_rows(ids, each) for each in stacked]
            rows, stacked = merged[0][0], torch.stack([matrix for _, matrix in merged])
        norms: list[float] = stacked[:, :, _SUM_SQUARES].sum(1).sqrt().tolist()
        size = stacked[0].numel() * stacked.element_size()
        blob = pack(stacked)
        self.totals.add_many(role, [each.step for each in found], rows, stacked)
        for at, each in enumerate(found):
            self.writer.add_matrix(each.step, role, rows, blob[at * size : (at + 1) * size])
            if each.histograms is not None:
                self.writer.add_histogram(each.step, role, rows, pack_counts(each.histograms))
        return norms


def _completed(step: Step, norms: Mapping[tuple[int, Role], float]) -> Step:
    """Return a recorded step with its norms; the update of a step without an optimizer is known one step later."""
    return replace(
        step,
        gradient_l2=norms.get((step.id, Role.GRADIENT)),
        weight_l2=norms.get((step.id, Role.WEIGHT)),
        update_l2=norms.get((step.id, Role.UPDATE)) if step.optimizer is not None else None,
    )
