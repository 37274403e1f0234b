"""What a step changed: a bounded sample of each tensor before it, compared with the same elements after it."""

# S = statistics, T = tensors

from __future__ import annotations

from collections.abc import Sequence

import torch

from whygrad.stats import fused
from whygrad.stats.kernel import many_updates
from whygrad.stats.library import library
from whygrad.stats.sampling import sample_view
from whygrad.stats.support import local_tensor, untracked

SAMPLE = 16_384  # elements of a tensor: the norm of noise is known to half a percent by so many


class Samples:
    """Samples of tensors as they are now."""

    @untracked
    def __init__(self, tensors: Sequence[torch.Tensor]) -> None:
        kernel = library()
        local = [local_tensor(tensor) for tensor in tensors]
        self._fused = None if kernel is None else fused.take_samples(kernel, local, SAMPLE)
        self._copies = {
            index: sample_view(tensor, SAMPLE).clone()
            for index, tensor in enumerate(local)
            if self._fused is None or not self._fused.rows[3 * index]
        }

    @untracked
    def updates(self, tensors: Sequence[torch.Tensor]) -> torch.Tensor:
        """Return the statistics of what changed since, float64 [T, S] on the CPU; zeros are what did not.

        Args:
            tensors: The same ones, in the same order. A tensor that has become another one in size or type, such as an
                empty one in place of one that is gone, gives zeros: no element was looked at.
        """
        kernel = library()
        local = [local_tensor(tensor) for tensor in tensors]
        after = [sample_view(local[index], SAMPLE) for index in self._copies]
        copied = many_updates(self._copies.values(), after)
        if self._fused is None or kernel is None:
            return copied
        matrix = self._fused.changes(kernel, local)
        if self._copies:
            matrix[list(self._copies)] = copied
        return matrix
