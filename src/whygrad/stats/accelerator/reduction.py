"""The device's half: from tensors to one vector of numbers, without a look at any of them.

Elements are laid end to end in one buffer, so that an elementwise operation is one launch, however many tensors there
are. Sums are `torch._foreach_norm`s over the parts of it, which on CUDA read many tensors in one launch and, asked for
float64, add in float64. (`foreach_reduce.cuh` of torch: orders 1, 2 and infinity, dense floating point tensors.)

Everything here runs on meta tensors as well, which have no values that could be looked at.
"""

# B = bins, N = elements, P = parts

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import torch

from whygrad.model import HISTOGRAM_BINS
from whygrad.stats.histogram import bins_of

NATIVE = frozenset({torch.float64, torch.float32, torch.float16, torch.bfloat16})  # reduced without a wider copy
MOST = 16_777_216  # elements in a buffer: bounds the temporaries, 10 bytes each of float32
LEAST = 4_194_304  # fewer are not worth the three dozen launches

SUM_ABS, NORM, MAX_ABS, NONZERO, FINITE_NONZERO, NANS, POSITIVE = range(7)
COLUMNS = 7
CODES = HISTOGRAM_BINS + 1  # the last one counts what no bin does: zeros, NaN, Inf


def batches(parts: Sequence[torch.Tensor]) -> Iterator[list[tuple[int, torch.Tensor]]]:
    """Cut flat tensors of one dtype into runs that fill a buffer each.

    A buffer holds as much as the largest of them, within `LEAST` and `MOST`; a tensor that does not fit in what is left
    begins a new one, and one larger than a buffer is cut.

    Yields:
        Parts of at least one element with the index of the tensor they belong to.
    """
    room = min(MOST, max([LEAST, *(part.numel() for part in parts)]))
    batch: list[tuple[int, torch.Tensor]] = []
    filled = 0
    for index, part in enumerate(parts):
        for piece in torch.split(part, room):
            if filled + piece.numel() > room:
                yield batch
                batch, filled = [], 0
            if piece.numel():
                batch.append((index, piece))
                filled += piece.numel()
    if batch:
        yield batch


def laid_out(parts: Sequence[torch.Tensor], dtype: torch.dtype) -> torch.Tensor:
    """Return the elements of flat tensors of one dtype end to end, [N]; a lone tensor of the right dtype as it is."""
    if len(parts) == 1 and parts[0].dtype is dtype:
        return parts[0]
    sizes = [part.numel() for part in parts]
    flat = torch.empty(sum(sizes), dtype=dtype, device=parts[0].device)
    torch._foreach_copy_(list(flat.split_with_sizes(sizes)), list(parts))
    return flat


def reduced(flat: torch.Tensor, sizes: Sequence[int]) -> torch.Tensor:
    """Return the sums of each part of a buffer as float64 [P, COLUMNS], on its device.

    Args:
        flat: [N], of a dtype in `NATIVE`; it is not written to.
        sizes: Elements of each part, at least one each; their sum is N.
    """
    finite = flat.nan_to_num(0.0, 0.0, 0.0)
    mask = torch.empty(flat.numel(), dtype=torch.bfloat16, device=flat.device)  # 0 and 1, which the norms can add up
    columns = [
        *_norms(finite, sizes, 1),
        *_norms(finite, sizes, 2),
        *_norms(finite, sizes, math.inf),
        *_norms(torch.ne(flat, 0, out=mask), sizes, 1),
        *_norms(torch.ne(finite, 0, out=mask), sizes, 1),
        *_norms(torch.ne(flat, flat, out=mask), sizes, 1),
        *_norms(finite.clamp_min_(0), sizes, 1),  # in place, so the last one
    ]
    return torch.stack(columns).view(COLUMNS, -1).T


def binned(flat: torch.Tensor, sizes: Sequence[int]) -> torch.Tensor:
    """Return the counts of each part of a buffer by size, int32 [P, CODES], on its device.

    Args:
        flat: [N], float32 or float64.
        sizes: Elements of each part, at least one each; their sum is N.
    """
    codes = bins_of(flat.abs()).int()
    torch._foreach_add_(list(codes.split_with_sizes(sizes)), [CODES * part for part in range(len(sizes))])
    counts = torch.zeros(CODES * len(sizes), dtype=torch.int32, device=flat.device)
    return counts.index_add_(0, codes, torch.ones_like(codes)).view(-1, CODES)  # `bincount` would make the host wait


def _norms(flat: torch.Tensor, sizes: Sequence[int], order: float) -> tuple[torch.Tensor, ...]:
    norms: tuple[torch.Tensor, ...] = torch._foreach_norm(
        list(flat.split_with_sizes(sizes)), order, dtype=torch.float64
    )
    return norms
