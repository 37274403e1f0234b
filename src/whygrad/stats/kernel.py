"""The kernels that the probe calls: from tensors to rows of statistics."""

# S = statistics, T = tensors

from __future__ import annotations

from collections.abc import Iterable, Sequence

import torch

from whygrad.stats.batch import FEW, SMALL, batch_statistics
from whygrad.stats.blob import pack, pack_counts
from whygrad.stats.sampling import sample_view
from whygrad.stats.silence import rows_with_gradient
from whygrad.stats.single import NARROW, NOTHING, Row, as_matrix, is_finite, local_row, tensor_statistics
from whygrad.stats.support import is_supported, local_tensor, refusal, untracked

__all__ = [
    "is_supported",
    "many_statistics",
    "many_updates",
    "pack",
    "pack_counts",
    "refusal",
    "rows_with_gradient",
    "sample_view",
    "tensor_statistics",
    "update_statistics",
]


@untracked
def many_statistics(tensors: Sequence[torch.Tensor]) -> torch.Tensor:
    """Return the statistics of tensors as float64 [T, S] on the CPU, with one transfer per device.

    A tensor that `refusal` refuses gives a row of zeros.
    """
    local = [local_tensor(tensor) for tensor in tensors]
    rows: list[Row | torch.Tensor] = [NOTHING] * len(local)
    small: dict[torch.dtype, list[int]] = {}
    for index, tensor in enumerate(local):
        if refusal(tensor) is not None:
            continue
        if tensor.numel() <= SMALL and tensor.is_cpu and tensor.layout is torch.strided:
            small.setdefault(tensor.dtype, []).append(index)
        else:
            rows[index] = local_row(tensor)
    for indexes in small.values():
        for index, row in zip(indexes, _small_rows([local[index] for index in indexes]), strict=True):
            rows[index] = row
    return _gathered(rows)


@untracked
def update_statistics(before: torch.Tensor, after: torch.Tensor) -> torch.Tensor:
    """Return the statistics of `after` minus `before` as float64 [S]; zeros are the elements that did not change.

    Zeros, no element looked at, where the two do not fit each other or cannot be measured.
    """
    return tensor_statistics(_change(before, after))


@untracked
def many_updates(before: Iterable[torch.Tensor], after: Iterable[torch.Tensor]) -> torch.Tensor:
    """Return `update_statistics` of each pair as float64 [T, S] on the CPU, with one transfer per device."""
    return many_statistics([_change(old, new) for old, new in zip(before, after, strict=True)])


def _small_rows(tensors: Sequence[torch.Tensor]) -> list[Row | torch.Tensor]:
    if len(tensors) < FEW:
        return [local_row(tensor) for tensor in tensors]
    rows = batch_statistics(tensors).tolist()
    return [row if is_finite(row) else local_row(tensor) for row, tensor in zip(rows, tensors, strict=True)]


def _gathered(rows: Sequence[Row | torch.Tensor]) -> torch.Tensor:
    """Return rows as one matrix, float64 [T, S] on the CPU, with one transfer per device."""
    matrix = as_matrix([NOTHING if isinstance(row, torch.Tensor) else row for row in rows])
    elsewhere: dict[torch.device, list[tuple[int, torch.Tensor]]] = {}
    for index, row in enumerate(rows):
        if isinstance(row, torch.Tensor):
            elsewhere.setdefault(row.device, []).append((index, row))
    for placed in elsewhere.values():
        stacked = torch.stack([row for _, row in placed])
        matrix[[index for index, _ in placed]] = stacked.to("cpu", torch.float64)
    return matrix


def _change(before: torch.Tensor, after: torch.Tensor) -> torch.Tensor:
    """Return `after` minus `before` in float32 or wider: zero exactly where the two are equal."""
    before, after = local_tensor(before), local_tensor(after)
    comparable = (
        is_supported(before)
        and is_supported(after)
        and before.layout is after.layout is torch.strided
        and before.shape == after.shape
        and before.device == after.device
    )
    if not comparable:
        return torch.empty(0, device="cpu")
    dtype = torch.float32 if {before.dtype, after.dtype} <= NARROW else torch.float64
    return after.to(dtype) - before.to(dtype)
