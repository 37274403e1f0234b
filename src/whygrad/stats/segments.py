"""Adding up rows of statistics: sums by sum, the maximum by maximum."""

# R = rows, S = statistics, T = tensors

from __future__ import annotations

import torch

from whygrad.model import STATISTICS

COUNT = STATISTICS.index("count")
SUM_ABS = STATISTICS.index("sum_abs")
MAX_ABS = STATISTICS.index("max_abs")
ZEROS = STATISTICS.index("zeros")


def add_up(matrix: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
    """Add up consecutive rows of a matrix.

    Args:
        matrix: float64 [R, S].
        lengths: int64 [T], how many consecutive rows belong to each tensor; their sum is R.

    Returns:
        float64 [T, S].
    """
    total = torch.segment_reduce(matrix, "sum", lengths=lengths, initial=0.0)
    largest = matrix[:, MAX_ABS].contiguous()
    total[:, MAX_ABS] = torch.segment_reduce(largest, "max", lengths=lengths, initial=0.0)
    return total
