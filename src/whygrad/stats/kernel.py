"""The kernels that the probe calls: from tensors to rows of statistics."""

# B = bins, S = statistics, T = tensors

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import torch

from whygrad.model import HISTOGRAM_BINS, STATISTICS
from whygrad.stats import fused
from whygrad.stats.addresses import address
from whygrad.stats.batch import FEW, SMALL, batch_statistics
from whygrad.stats.blob import pack, pack_counts
from whygrad.stats.histogram import size_histogram
from whygrad.stats.library import library
from whygrad.stats.sampling import sample_view
from whygrad.stats.silence import rows_with_gradient
from whygrad.stats.single import NARROW, NOTHING, Row, as_matrix, is_finite, local_row, single_statistics
from whygrad.stats.support import is_supported, local_tensor, refusal, untracked

__all__ = [
    "Measured",
    "is_supported",
    "many_statistics",
    "many_updates",
    "measure",
    "pack",
    "pack_counts",
    "refusal",
    "rows_with_gradient",
    "sample_view",
    "tensor_statistics",
    "update_statistics",
]


class Measured(NamedTuple):
    """The statistics of several tensors."""

    matrix: torch.Tensor  # float64 [T, S] on the CPU
    histograms: torch.Tensor | None  # int32 [T, B] on the CPU; of large tensors a sample
    refused: dict[int, str]  # the tensors that `refusal` refuses, and why: their rows are zeros
    table: array[int] | None = None  # `fused.table` of the tensors, where the compiled kernel read them all


@untracked
def measure(tensors: Sequence[torch.Tensor], *, histograms: bool = False) -> Measured:
    """Measure tensors: in one read of each where the compiled kernel can, with one transfer per device elsewhere."""
    kernel = library()
    found = fused.measure(kernel, tensors, histograms=histograms) if kernel is not None else None
    left = list(range(len(tensors))) if found is None else found.left
    if not left and found is not None:
        return Measured(found.matrix, found.histograms, {}, found.rows)
    rest = [local_tensor(tensors[index]) for index in left]
    refused = {index: why for index, tensor in zip(left, rest, strict=True) if (why := refusal(tensor)) is not None}
    matrix = _measured_by_torch(rest)
    counts = _histograms_by_torch(rest) if histograms else None
    if found is None:
        return Measured(matrix, counts, refused)
    found.matrix[left] = matrix
    if found.histograms is not None and counts is not None:
        found.histograms[left] = counts
    return Measured(found.matrix, found.histograms, refused)


@untracked
def tensor_statistics(tensor: torch.Tensor) -> torch.Tensor:
    """Return the statistics of a tensor as float64 [S] in the order of `model.STATISTICS`, on the tensor's device.

    The host never waits for another device. A sparse tensor counts as the dense one it stands for, a DTensor as its
    local part; a tensor that `refusal` refuses gives zeros: no element was looked at.
    """
    kernel = library()
    where = 0 if kernel is None else address(tensor)
    if kernel is not None and where:
        row = torch.empty(len(STATISTICS), dtype=torch.float64, device="cpu")
        if fused.one(kernel, where, tensor, row.data_ptr()):
            return row
    return single_statistics(tensor)


def many_statistics(tensors: Sequence[torch.Tensor]) -> torch.Tensor:
    """Return the statistics of tensors as float64 [T, S] on the CPU, with one transfer per device.

    A tensor that `refusal` refuses gives a row of zeros.
    """
    return measure(tensors).matrix


def _histograms_by_torch(tensors: Sequence[torch.Tensor]) -> torch.Tensor:
    counts = [size_histogram(tensor, fused.SAMPLED_ABOVE).cpu() for tensor in tensors]
    return torch.stack(counts) if counts else torch.zeros(0, HISTOGRAM_BINS, dtype=torch.int32, device="cpu")


def _measured_by_torch(local: Sequence[torch.Tensor]) -> torch.Tensor:
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
