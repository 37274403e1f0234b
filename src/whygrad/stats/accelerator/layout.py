"""The host's half: from the vector that a device sent back to the statistics of each tensor."""

# B = bins, H = parts of samples, P = parts, S = statistics, T = tensors

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from whygrad.model import HISTOGRAM_BINS, STATISTICS
from whygrad.stats.accelerator.reduction import (
    CODES,
    COLUMNS,
    FINITE_NONZERO,
    MAX_ABS,
    NANS,
    NONZERO,
    NORM,
    POSITIVE,
    SUM_ABS,
)
from whygrad.stats.segments import MAX_ABS as LARGEST


@dataclass(frozen=True, slots=True)
class Layout:
    """What stands where in a vector: sums [P, COLUMNS] of the parts of tensors, then counts [H, CODES] of samples."""

    counts: Sequence[int]  # elements that were read of each tensor, [T]
    repeats: Sequence[int]  # how often each of them stands in the tensor, [T]
    implicit_zeros: Sequence[int]  # elements that were not read, [T]
    parts: Sequence[int]  # the tensor of each part, [P]
    samples: Sequence[int] | None  # the tensor of each part of a sample, [H]; None: there are no histograms
    sampled: frozenset[int] = frozenset()  # tensors of which the histogram counts a sample

    @property
    def numel(self) -> int:
        """Return the length of the vector."""
        return COLUMNS * len(self.parts) + CODES * len(self.samples or ())

    def matrix(self, vector: torch.Tensor) -> torch.Tensor:
        """Return the statistics, float64 [T, S], from a vector on the CPU."""
        parts = vector[: COLUMNS * len(self.parts)].view(-1, COLUMNS)
        read = torch.tensor(self.counts, dtype=torch.float64, device="cpu")
        owners = torch.tensor(self.parts, dtype=torch.int64, device="cpu")
        sums = torch.zeros(len(self.counts), COLUMNS, dtype=torch.float64, device="cpu")
        squares = parts[:, NORM].square()
        sums.index_add_(0, owners, parts)
        norms = torch.zeros_like(read).index_add_(0, owners, squares)
        largest = torch.zeros_like(read).scatter_reduce_(0, owners, parts[:, MAX_ABS].contiguous(), "amax")
        repeats = torch.tensor(self.repeats, dtype=torch.float64, device="cpu")
        implicit = torch.tensor(self.implicit_zeros, dtype=torch.float64, device="cpu")
        columns = {
            "count": read,
            "sum": 2 * sums[:, POSITIVE] - sums[:, SUM_ABS],
            "sum_squares": norms,
            "sum_abs": sums[:, SUM_ABS],
            "max_abs": largest,
            "zeros": read - sums[:, NONZERO],
            "nans": sums[:, NANS],
            "infs": sums[:, NONZERO] - sums[:, FINITE_NONZERO] - sums[:, NANS],
        }
        matrix = torch.stack([columns[name] for name in STATISTICS], 1) * repeats[:, None]
        matrix[:, LARGEST] = largest
        for name in ("count", "zeros"):
            matrix[:, STATISTICS.index(name)] += implicit
        return matrix

    def histograms(self, vector: torch.Tensor) -> torch.Tensor | None:
        """Return the counts by size, int32 [T, B], from a vector on the CPU."""
        if self.samples is None:
            return None
        found = vector[COLUMNS * len(self.parts) :].view(-1, CODES)[:, :HISTOGRAM_BINS].long()
        owners = torch.tensor(self.samples, dtype=torch.int64, device="cpu")
        counts = torch.zeros(len(self.counts), HISTOGRAM_BINS, dtype=torch.int64, device="cpu")
        counts.index_add_(0, owners, found)
        repeats = [1 if index in self.sampled else times for index, times in enumerate(self.repeats)]
        return (counts * torch.tensor(repeats, dtype=torch.int64, device="cpu")[:, None]).int()
