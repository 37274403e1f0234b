"""A kernel in Triton that reads each tensor once, where `reduction` takes a dozen passes over a copy.

It gives the same columns, and a histogram of all elements rather than of a sample. Nobody has run it on a GPU yet: it
is checked in Triton's interpreter, and used only where `WHYGRAD_KERNEL=triton` asks for it.
"""

# P = parts

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
import triton
import triton.language as tl

from whygrad.model import HISTOGRAM_BINS, HISTOGRAM_EXPONENTS_PER_BIN, HISTOGRAM_LOWEST_EXPONENT
from whygrad.stats.accelerator.cargo import Reduction
from whygrad.stats.accelerator.layout import Layout
from whygrad.stats.accelerator.reduction import CODES, COLUMNS, NATIVE
from whygrad.stats.support import elements

LEAST = 65_536  # elements that one program of the grid reads
MOST_PARTS = 4096  # of all tensors together, about: their numbers are what is sent
_BLOCK = 1024  # elements at a time
_ROOM = 64  # a power of two above CODES
_KINDS = {torch.float32: tl.float32, torch.float64: tl.float64, torch.float16: tl.float16, torch.bfloat16: tl.bfloat16}

Upload = Callable[[Sequence[int]], torch.Tensor]


def can_read(tensors: Sequence[torch.Tensor]) -> bool:
    """Return whether all of some local tensors are of a kind that the kernel reads."""
    return all(tensor.dtype in NATIVE and tensor.layout is torch.strided for tensor in tensors)


def reduce_in_one_pass(tensors: Sequence[torch.Tensor], upload: Upload, *, histograms: bool) -> Reduction:
    """Reduce local tensors of one device that the kernel can read.

    Args:
        tensors: See `can_read`.
        upload: Brings integers to the device, int64, without waiting for it.
        histograms: Whether to count by size as well.
    """
    read = [elements(tensor) for tensor in tensors]
    values = [each.values.contiguous() for each in read]
    length = max(LEAST, -(-sum(part.numel() for part in values) // MOST_PARTS))
    owners: list[int] = []
    rows: list[torch.Tensor] = []
    counts: list[torch.Tensor] = []
    for dtype in dict.fromkeys(part.dtype for part in values):
        addresses: list[int] = []
        sizes: list[int] = []
        for index, part in enumerate(values):
            if part.dtype is dtype:
                starts = range(0, part.numel(), length)
                addresses += [part.data_ptr() + start * part.element_size() for start in starts]
                sizes += [min(length, part.numel() - start) for start in starts]
                owners += [index] * len(starts)
        if sizes:
            device = tensors[0].device
            sums = torch.empty(len(sizes), COLUMNS, dtype=torch.float64, device=device)
            codes = torch.empty(len(sizes) if histograms else 0, CODES, dtype=torch.float64, device=device)
            table = upload([*addresses, *sizes])
            _launch(table, sums, codes, dtype, histograms=histograms)
            rows.append(sums.view(-1))
            counts.append(codes.view(-1))
    layout = Layout(
        counts=[part.numel() for part in values],
        repeats=[each.repeats for each in read],
        implicit_zeros=[0] * len(values),
        parts=owners,
        samples=owners if histograms else None,
    )
    empty = torch.empty(0, dtype=torch.float64, device=tensors[0].device)
    return Reduction(torch.cat([empty, *rows, *counts]), layout)


def _launch(
    table: torch.Tensor, sums: torch.Tensor, codes: torch.Tensor, dtype: torch.dtype, *, histograms: bool
) -> None:
    # Triton launches on the current device, wherever the pointers lead
    with torch.cuda.device_of(table):  # type: ignore[no-untyped-call]
        _kernel[(len(sums),)](
            table, sums, codes, len(sums), **constants(dtype, histograms=histograms), enable_fp_fusion=True
        )


def constants(dtype: torch.dtype, *, histograms: bool) -> dict[str, Any]:
    """Return what the kernel is compiled for."""
    wide = dtype is torch.float64
    return {
        "kind": _KINDS[dtype],
        "wide": wide,
        "histograms": histograms,
        "columns": COLUMNS,
        "bins": HISTOGRAM_BINS,
        "codes_room": _ROOM,
        "lowest": (1023 if wide else 127) + HISTOGRAM_LOWEST_EXPONENT,
        "per_bin": HISTOGRAM_EXPONENTS_PER_BIN,
        "block": _BLOCK,
    }


@triton.jit  # type: ignore[untyped-decorator]
def _kernel(  # type: ignore[no-untyped-def]  # noqa: PLR0917 - Triton reads the annotations
    table,  # noqa: ANN001
    sums,  # noqa: ANN001
    codes,  # noqa: ANN001
    parts,  # noqa: ANN001
    kind: tl.constexpr,
    wide: tl.constexpr,
    histograms: tl.constexpr,
    columns: tl.constexpr,
    bins: tl.constexpr,
    codes_room: tl.constexpr,
    lowest: tl.constexpr,
    per_bin: tl.constexpr,
    block: tl.constexpr,
) -> None:
    part = tl.program_id(0)
    memory = tl.load(table + part).to(tl.pointer_type(kind))
    count = tl.load(table + parts + part)
    lanes = tl.arange(0, block)
    positive = tl.zeros((block,), dtype=tl.float64)
    size = tl.zeros((block,), dtype=tl.float64)
    squares = tl.zeros((block,), dtype=tl.float64)
    largest = tl.zeros((block,), dtype=tl.float64)
    nonzero = tl.zeros((block,), dtype=tl.int32)
    nans = tl.zeros((block,), dtype=tl.int32)
    infs = tl.zeros((block,), dtype=tl.int32)
    counted = tl.zeros((codes_room,), dtype=tl.int32)
    for start in range(0, count, block):
        here = start + lanes < count
        narrow = tl.load(memory + start + lanes, mask=here, other=0.0)
        values = narrow.to(tl.float64)
        is_nan = values != values  # noqa: PLR0124
        is_inf = tl.abs(values) == float("inf")
        finite = tl.where(is_nan | is_inf, 0.0, values)
        sizes = tl.abs(finite)
        positive += tl.where(finite > 0, finite, 0.0)
        size += sizes
        squares += finite * finite
        largest = tl.maximum(largest, sizes)
        nonzero += (values != 0).to(tl.int32)
        nans += is_nan.to(tl.int32)
        infs += is_inf.to(tl.int32)
        if histograms:
            if wide:
                exponents = (sizes.to(tl.int64, bitcast=True) >> 52).to(tl.int32)
            else:
                exponents = sizes.to(tl.float32).to(tl.int32, bitcast=True) >> 23
            code = tl.minimum(tl.maximum(exponents - lowest, 0) // per_bin, bins - 1)
            counted += tl.histogram(tl.where(sizes > 0, code, bins), codes_room)
    row = sums + part * columns
    tl.store(row, tl.sum(size))
    tl.store(row + 1, tl.sqrt(tl.sum(squares)))
    tl.store(row + 2, tl.max(largest))
    tl.store(row + 3, tl.sum(nonzero).to(tl.float64))
    tl.store(row + 4, (tl.sum(nonzero) - tl.sum(nans) - tl.sum(infs)).to(tl.float64))
    tl.store(row + 5, tl.sum(nans).to(tl.float64))
    tl.store(row + 6, tl.sum(positive))
    if histograms:
        room = tl.arange(0, codes_room)
        tl.store(codes + part * (bins + 1) + room, counted.to(tl.float64), mask=room <= bins)
