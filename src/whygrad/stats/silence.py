"""Which rows of a parameter a gradient reaches."""

from __future__ import annotations

import torch

from whygrad.stats import fused
from whygrad.stats.library import library
from whygrad.stats.support import local_tensor, refusal, untracked


@untracked
def rows_with_gradient(gradient: torch.Tensor) -> torch.Tensor:
    """Return which rows (dimension 0) hold an element that is not zero, bool [rows]; NaN is not zero.

    A 0-dim gradient is one row; a DTensor gives the rows of its local part. A gradient that `refusal` refuses gives an
    empty tensor: nothing is known of its rows.
    """
    local = local_tensor(gradient)
    if refusal(local) is not None:
        return torch.empty(0, dtype=torch.bool, device="cpu")
    if local.layout is not torch.strided:
        return _sparse_rows(local if local.layout is torch.sparse_coo else local.to_sparse(layout=torch.sparse_coo))
    return _dense_rows(local if local.dim() else local.view(1))


@untracked
def mark_rows(gradient: torch.Tensor, alive: torch.Tensor | None) -> tuple[torch.Tensor, bool]:
    """Mark the rows of a gradient that hold an element that is not zero.

    Args:
        gradient: Any that `refusal` does not refuse.
        alive: What was marked before, bool [rows] on the gradient's device, which is written to; None: nothing was.

    Returns:
        What is marked now, and whether that is known to be all: the host never waits for another device.
    """
    local = local_tensor(gradient)
    rows = local.size(0) if local.dim() else 1
    if alive is None or len(alive) != rows:
        alive = torch.zeros(rows, dtype=torch.bool, device=local.device)
    kernel = library()
    silent = None if kernel is None or not local.dim() else fused.mark_rows(kernel, local, alive)
    if silent is None:
        alive |= rows_with_gradient(local)
        silent = int(alive.is_cpu and not alive.all())
    return alive, alive.is_cpu and not silent


def _dense_rows(gradient: torch.Tensor) -> torch.Tensor:
    if gradient.dim() == 1:
        return gradient != 0
    if not gradient.numel():
        return torch.zeros(gradient.size(0), dtype=torch.bool, device=gradient.device)
    rest = tuple(range(1, gradient.dim()))
    return (gradient.amax(rest) != 0) | (gradient.amin(rest) != 0)  # an order of magnitude faster than `!= 0` first


def _sparse_rows(gradient: torch.Tensor) -> torch.Tensor:
    coalesced = gradient.coalesce()
    hits = torch.zeros(gradient.size(0), dtype=torch.int32, device=gradient.device)
    stored = _dense_rows(coalesced.values())
    return hits.index_add_(0, coalesced.indices()[0], stored.int()) > 0
