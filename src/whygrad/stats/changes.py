"""What a step changed: a bounded sample of each tensor before it, compared with the same elements after it."""

# S = statistics, T = tensors

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence

import torch

from whygrad.stats import fused
from whygrad.stats.kernel import many_updates
from whygrad.stats.library import library
from whygrad.stats.sampling import sample_view
from whygrad.stats.support import local_tensor, untracked

SAMPLE = 4_096  # elements of a tensor: the norm of noise is known to one percent by so many


class Samples:
    """Samples of tensors as they are now."""

    @untracked
    def __init__(self, tensors: Sequence[torch.Tensor], table: array[int] | None = None) -> None:
        """Copy some elements of tensors; `table` is `fused.table` of them, where that is known."""
        kernel = library()
        self._fused: fused.Samples | None = None
        left: Iterable[int] = range(len(tensors))
        if kernel is not None:
            rows = fused.table(list(map(local_tensor, tensors))) if table is None else table
            self._fused = fused.take_samples(kernel, rows, SAMPLE)
            left = [index for index, where in enumerate(rows[::3]) if not where]
        self._copies = {index: sample_view(local_tensor(tensors[index]), SAMPLE).clone() for index in left}

    @untracked
    def updates(self, tensors: Sequence[torch.Tensor]) -> torch.Tensor:
        """Return the statistics of what changed since, float64 [T, S] on the CPU; zeros are what did not.

        Args:
            tensors: The same ones, in the same order. A tensor that has become another one in size or type, such as an
                empty one in place of one that is gone, gives zeros: no element was looked at.
        """
        kernel = library()
        local = [local_tensor(tensor) for tensor in tensors]
        matrix = None if self._fused is None or kernel is None else self._fused.changes(kernel, local)
        if matrix is not None and not self._copies:
            return matrix
        after = [sample_view(local[index], SAMPLE) for index in self._copies]
        copied = many_updates(self._copies.values(), after)
        if matrix is None:
            return copied
        matrix[list(self._copies)] = copied
        return matrix
