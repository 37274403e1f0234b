"""What a step changed, wherever the tensors lie: `changes.Samples` without waiting for an accelerator."""

# S = statistics, T = tensors

from __future__ import annotations

from array import array
from collections.abc import Sequence
from functools import partial

import torch

from whygrad.stats.accelerator.accelerators import Accelerators, without
from whygrad.stats.accelerator.plan import Kept, changes, keep
from whygrad.stats.changes import SAMPLE
from whygrad.stats.changes import Samples as HomeSamples
from whygrad.stats.kernel import Measured
from whygrad.stats.pending import Pending, Settled
from whygrad.stats.support import local_tensor, untracked


class Samples:
    """Samples of tensors as they are now."""

    @untracked
    def __init__(
        self, tensors: Sequence[torch.Tensor], accelerators: Accelerators, table: array[int] | None = None
    ) -> None:
        """Copy some elements of tensors; `table` is `fused.table` of them, where that is known."""
        self._accelerators = accelerators
        self._away: dict[torch.device, tuple[list[int], list[Kept]]] = {}
        away = accelerators.away(tensors)
        self._home = HomeSamples(without(tensors, away)) if away else HomeSamples(tensors, table)
        for device, indexes in away.items():
            strided = [index for index in indexes if tensors[index].layout is torch.strided]
            kept = accelerators.accepted(tensors, strided, {})
            if kept:
                local = [local_tensor(tensors[index]) for index in kept]
                self._away[device] = kept, keep(local, accelerators.sampler, SAMPLE)

    @untracked
    def updates(self, tensors: Sequence[torch.Tensor]) -> Pending:
        """Return the statistics of what changed since; zeros are what did not.

        Args:
            tensors: The same ones, in the same order. A tensor that has become another one in size, type or device,
                such as an empty one in place of one that is gone, gives zeros: no element was looked at.
        """
        away = self._accelerators.away(tensors)
        home = Measured(self._home.updates(without(tensors, away) if away else tensors), None, {})
        if not self._away:
            return Settled(home)
        launched = self._accelerators.launched(home)
        for device, (indexes, kept) in self._away.items():
            comparable = set(self._accelerators.accepted(tensors, indexes, {}))
            now = [local_tensor(tensors[index]) if index in comparable else None for index in indexes]
            if comparable:
                work = partial(changes, kept, now, self._accelerators.sampler, SAMPLE)
                launched.cargo.append(self._accelerators.launch(device, indexes, work))
        return launched
