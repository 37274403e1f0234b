"""Statistics of many CPU tensors in one call of the compiled kernel, which reads each of them once.

A tensor without an address (see `addresses.address`) is left to the kernels in plain torch. The functions here must be
called where `__torch_function__` is disabled.
"""

# B = bins, S = statistics, T = tensors

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch

from whygrad.model import HISTOGRAM_BINS, STATISTICS
from whygrad.stats.addresses import TYPES, address
from whygrad.stats.library import Library

SAMPLED_ABOVE = 65_536  # elements: the histogram of a larger tensor is that of one block in SHARE
SHARE = 8
THREADS_ABOVE = 1_048_576  # elements in all: below, starting a thread costs more than it gives

_SIZES = (4, 8, 2, 2)  # bytes, by the number of the type


def table(tensors: Sequence[torch.Tensor]) -> array[int]:
    """Return (address, elements, type) of each tensor, as the kernel takes them; the address is 0 where it has none."""
    rows: list[int] = []
    for tensor in tensors:
        found = address(tensor)
        rows += (found, tensor.numel(), TYPES[tensor.dtype]) if found else (0, 0, 0)
    return array("q", rows)


class Measured(NamedTuple):
    """What the kernel found."""

    rows: array[int]  # see `table`
    matrix: torch.Tensor  # float64 [T, S]
    histograms: torch.Tensor | None  # int32 [T, B]
    left: list[int]  # the tensors that it could not read: their rows are zeros


def measure(kernel: Library, tensors: Sequence[torch.Tensor], *, histograms: bool) -> Measured | None:
    """Measure tensors; None where there is no memory for it."""
    rows = table(tensors)
    many = len(tensors)
    total = sum(rows[1::3])
    matrix = torch.empty(many, len(STATISTICS), dtype=torch.float64, device="cpu")
    counts = torch.zeros(many, HISTOGRAM_BINS, dtype=torch.int32, device="cpu") if histograms else None
    failed = kernel.fit(total).whygrad_statistics(
        rows.buffer_info()[0],
        many,
        matrix.data_ptr(),
        None if counts is None else counts.data_ptr(),
        SAMPLED_ABOVE,
        SHARE,
        torch.get_num_threads() if total > THREADS_ABOVE else 1,
    )
    left = [i for i, found in enumerate(rows[::3]) if not found]
    return None if failed else Measured(rows, matrix, counts, left)


def one(kernel: Library, where: int, tensor: torch.Tensor, row: int) -> bool:
    """Measure one tensor; return whether there was memory for it.

    Args:
        kernel: The compiled kernel.
        where: What `address` returned for the tensor; not 0.
        tensor: What is measured.
        row: Address of float64 [S] that is written.
    """
    total = tensor.numel()
    threads = torch.get_num_threads() if total > THREADS_ABOVE else 1
    return not kernel.fit(total).whygrad_one(where, total, TYPES[tensor.dtype], row, threads)


@dataclass(frozen=True, slots=True)
class Samples:
    """Elements of tensors before a step, one tensor behind the other."""

    rows: array[int]  # see `table`
    limit: int  # elements of one tensor
    memory: torch.Tensor  # uint8

    def changes(self, kernel: Library, tensors: Sequence[torch.Tensor]) -> torch.Tensor:
        """Return the statistics of what has changed since, float64 [T, S]; zeros where nothing can be compared."""
        now = table(tensors)
        for index in range(0, len(now), 3):
            if now[index + 1 : index + 3] != self.rows[index + 1 : index + 3]:
                now[index] = 0  # another size or type: passed over, with what was kept of it
        now[1::3], now[2::3] = self.rows[1::3], self.rows[2::3]
        matrix = torch.empty(len(tensors), len(STATISTICS), dtype=torch.float64, device="cpu")
        kernel.fit(self.memory.numel()).whygrad_updates(
            now.buffer_info()[0], len(tensors), self.limit, self.memory.data_ptr(), matrix.data_ptr()
        )
        return matrix


def take_samples(kernel: Library, rows: array[int], limit: int) -> Samples:
    """Copy at most `limit` elements of each tensor of a table."""
    size = sum(min(count, limit) * _SIZES[kind] for count, kind in zip(rows[1::3], rows[2::3], strict=True))
    memory = torch.empty(size, dtype=torch.uint8, device="cpu")
    kernel.fit(size).whygrad_samples(rows.buffer_info()[0], len(rows) // 3, limit, memory.data_ptr())
    return Samples(rows, limit, memory)


def mark_rows(kernel: Library, gradient: torch.Tensor, alive: torch.Tensor) -> int | None:
    """Mark the rows of a gradient that hold an element that is not zero, and return how many never did; None: cannot.

    Args:
        kernel: The compiled kernel.
        gradient: Of one dimension or more.
        alive: bool [rows], contiguous; rows that are marked already are not read.
    """
    rows = table([gradient])
    if not rows[0]:
        return None
    many = gradient.size(0)
    silent: int = kernel.held.whygrad_rows(rows.buffer_info()[0], many, gradient.numel() // many, alive.data_ptr())
    return silent
