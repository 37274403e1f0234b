"""A bounded sample of a tensor's elements."""

# N = elements

from __future__ import annotations

import torch

from whygrad.stats.support import elements, local_tensor, refusal, untracked

LIMIT = 65_536
_RUN = 16  # elements read in a row, a cache line of float32: single ones would cost one each
_GOLDEN = 2_654_435_769  # 2**32 / golden ratio: its multiples spread evenly over any range


@untracked
def sample_view(tensor: torch.Tensor, limit: int = LIMIT) -> torch.Tensor:
    """Return at most `limit` elements of a tensor, 1-D; all of them, as a view, if it has no more.

    A larger tensor is cut into equal stretches and one short run is copied from each, at a place that moves from
    stretch to stretch, so that no column or channel is favoured. The same elements are taken each time from tensors of
    the same shape and strides. Elements that a sparse layout does not store or that are there only by expansion are
    left out; a tensor that `refusal` refuses gives an empty one.
    """
    local = local_tensor(tensor)
    if refusal(local) is not None:
        return torch.empty(0, device="cpu")
    values = elements(local).values.detach()
    if values.numel() <= limit:
        return values
    if limit < _RUN:
        return values[:limit]
    return take_runs(values, run_starts(values.numel(), limit, values.device))


def run_starts(count: int, limit: int, device: torch.device) -> torch.Tensor:
    """Return which runs of elements make up the sample of a tensor, int64 [limit // run], on a device.

    Args:
        count: Elements of the tensor, more than `limit`.
        limit: Elements of the sample, at least those of a run.
        device: Where the tensor is.
    """
    stretches = limit // _RUN
    stretch = torch.arange(stretches, device=device)
    first = stretch * (count // _RUN) // stretches
    return first + stretch * _GOLDEN % (count // _RUN // stretches)


def take_runs(values: torch.Tensor, starts: torch.Tensor) -> torch.Tensor:
    """Return a copy of the runs of a flat tensor that `run_starts` chose, 1-D."""
    return values[: values.numel() // _RUN * _RUN].view(-1, _RUN).index_select(0, starts).view(-1)
