"""Totals of statistics over all recorded steps of a run."""

# I = ids, K = steps, R = rows, S = statistics, T = tensors

from __future__ import annotations

from array import array
from collections.abc import Sequence

import torch

from whygrad.model import STATISTICS, Role, Statistics, Total
from whygrad.stats.library import library
from whygrad.stats.segments import COUNT, MAX_ABS, ZEROS, add_up
from whygrad.stats.support import untracked

_NANS = STATISTICS.index("nans")
_INFS = STATISTICS.index("infs")
_NEVER = -1


@untracked
def merge_rows(ids: Sequence[int], matrix: torch.Tensor) -> tuple[list[int], torch.Tensor]:
    """Add up the rows that share an id: an output that was called several times in one step.

    Args:
        ids: Id of each row, [R], in any order.
        matrix: float64 [R, S] on the CPU.

    Returns:
        The ids, each once, ascending; and their rows, float64 [I, S].
    """
    if not ids:
        return [], matrix
    order = torch.tensor(ids, dtype=torch.int64, device="cpu").sort(stable=True)
    unique, lengths = torch.unique_consecutive(order.values, return_counts=True)
    return unique.tolist(), add_up(matrix[order.indices], lengths)


class RunningTotals:
    """The totals of every tensor in every role, so far."""

    def __init__(self) -> None:
        self._roles: dict[Role, _RoleTotals] = {}

    def add(self, role: Role, step: int, ids: Sequence[int], matrix: torch.Tensor) -> None:
        """Add the statistics of one recorded step.

        Args:
            role: What the statistics describe.
            step: Number of the step.
            ids: Id of each row, [I], each at most once, counted from 0.
            matrix: float64 [I, S] on the CPU. A row with count 0 is not counted as seen.
        """
        self.add_many(role, (step,), ids, matrix.unsqueeze(0))

    def add_many(self, role: Role, steps: Sequence[int], ids: Sequence[int], matrices: torch.Tensor) -> None:
        """Add the statistics of several recorded steps, in any order.

        Args:
            role: What the statistics describe.
            steps: Numbers of the steps, [K].
            ids: Id of each row, [I], each at most once, counted from 0.
            matrices: float64 [K, I, S] on the CPU. A row with count 0 is not counted as seen.
        """
        if role not in self._roles:
            self._roles[role] = _RoleTotals()
        self._roles[role].add(steps, ids, matrices)

    def totals(self) -> list[Total]:
        """Return the totals of each tensor that was seen, by role and ascending id."""
        return [total for role, totals in self._roles.items() for total in totals.totals(role)]


class _RoleTotals:
    """The totals in one role; row i of each tensor belongs to id i."""

    def __init__(self) -> None:
        self._statistics = torch.zeros(0, len(STATISTICS), dtype=torch.float64, device="cpu")
        self._steps = torch.zeros(0, 3, dtype=torch.int64, device="cpu")  # seen, all zero, with NaN or Inf
        self._first_nonfinite = torch.zeros(0, dtype=torch.int64, device="cpu")

    @untracked
    def add(self, steps: Sequence[int], ids: Sequence[int], matrices: torch.Tensor) -> None:
        if not ids:
            return
        self._grow(max(ids) + 1)
        kernel = library()
        if kernel is None or not matrices.is_contiguous() or matrices.dtype is not torch.float64:
            at = torch.tensor(ids, dtype=torch.int64, device="cpu")
            for step, matrix in zip(steps, matrices, strict=True):
                self._add(step, at, matrix)
            return
        rows = array("q", ids)  # must live as long as the calls
        where, first, size = rows.buffer_info()[0], matrices.data_ptr(), matrices[0].nbytes
        state = (self._statistics.data_ptr(), self._steps.data_ptr(), self._first_nonfinite.data_ptr())
        for index, step in enumerate(steps):
            kernel.held.whygrad_add(where, len(ids), first + index * size, step, *state)

    def _add(self, step: int, at: torch.Tensor, matrix: torch.Tensor) -> None:
        count = matrix[:, COUNT]
        nonfinite = (matrix[:, _NANS] + matrix[:, _INFS]) > 0
        seen = count > 0
        self._steps[at] += torch.stack((seen, seen & (matrix[:, ZEROS] == count), nonfinite), 1)
        old = self._statistics[at]
        new = old + matrix
        new[:, MAX_ABS] = torch.maximum(old[:, MAX_ABS], matrix[:, MAX_ABS])
        self._statistics[at] = new
        first = self._first_nonfinite[at]
        earlier = (first == _NEVER) | (first > step)  # steps may come in any order
        self._first_nonfinite[at] = first.masked_fill(nonfinite & earlier, step)

    def totals(self, role: Role) -> list[Total]:
        rows = zip(self._steps.tolist(), self._first_nonfinite.tolist(), self._statistics.tolist(), strict=True)
        return [
            Total(role, id_, seen, zero, nonfinite, None if first == _NEVER else first, Statistics(*statistics))
            for id_, ((seen, zero, nonfinite), first, statistics) in enumerate(rows)
            if seen
        ]

    def _grow(self, size: int) -> None:
        """Make room for ids below `size`; twice the room each time, so that growing stays cheap."""
        old = len(self._first_nonfinite)
        if size > old:
            more = max(size, 2 * old) - old
            self._statistics = torch.cat((self._statistics, self._statistics.new_zeros(more, len(STATISTICS))))
            self._steps = torch.cat((self._steps, self._steps.new_zeros(more, 3)))
            self._first_nonfinite = torch.cat((self._first_nonfinite, self._first_nonfinite.new_full((more,), _NEVER)))
