"""How many elements of which size: the log2 histogram of `model.HISTOGRAM_BINS`."""

# N = elements, B = bins

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import torch

from whygrad.model import HISTOGRAM_BINS, HISTOGRAM_EXPONENTS_PER_BIN, HISTOGRAM_LOWEST_EXPONENT
from whygrad.stats.sampling import sample_view
from whygrad.stats.single import BLOCK
from whygrad.stats.support import elements, local_tensor, refusal, untracked

_DEVICE_BLOCK = 1_048_576  # elements: bounds the temporaries on other devices


class _Format(NamedTuple):
    """How IEEE 754 lays out a floating point number of one width: sign, exponent, mantissa."""

    bits: torch.dtype  # integer of the same width
    mantissa: int  # bits
    bias: int
    exponents: int


_FORMATS = {
    torch.float32: _Format(torch.int32, 23, 127, 256),
    torch.float64: _Format(torch.int64, 52, 1023, 2048),
}


@untracked
def size_histogram(tensor: torch.Tensor, limit: int | None = None) -> torch.Tensor:
    """Return the counts of finite, nonzero elements by size |x|, int32 [B], on the tensor's device.

    The exponent is read from the bits of the number, so no bin is off by a rounded logarithm.

    Args:
        tensor: Any tensor; one that `refusal` refuses gives zeros.
        limit: Look at most at that many elements (see `sample_view`); None looks at all.
    """
    local = local_tensor(tensor)
    if refusal(local) is not None:
        return torch.zeros(HISTOGRAM_BINS, dtype=torch.int32, device="cpu")
    part = elements(local)
    if limit is not None and part.values.numel() > limit:
        return _counts(sample_view(part.values, limit)).int()
    return (_counts(part.values) * part.repeats).int()


def _counts(values: torch.Tensor) -> torch.Tensor:
    """Return the counts of a flat tensor, int64 [B]."""
    dtype = torch.float64 if values.dtype is torch.float64 else torch.float32
    if not values.is_cpu:
        pieces = torch.split(values, _DEVICE_BLOCK)
        return torch.stack([_count_elsewhere(piece.to(dtype).abs()) for piece in pieces]).sum(0)
    by_exponent = torch.zeros(_FORMATS[dtype].exponents, dtype=torch.int64, device="cpu")
    for piece in torch.split(values, BLOCK):
        by_exponent += _by_exponent(piece.to(dtype).abs())
    counts = torch.zeros(HISTOGRAM_BINS, dtype=torch.int64, device="cpu")
    return counts.index_add_(0, _bins_of_exponents(dtype), by_exponent)


def _by_exponent(sizes: torch.Tensor) -> torch.Tensor:
    """Return the counts of finite, nonzero CPU elements by biased exponent, int64 [exponents]."""
    layout = _FORMATS[sizes.dtype]
    counts = torch.bincount(sizes.view(layout.bits) >> layout.mantissa, minlength=layout.exponents)
    if counts[0].item():  # zeros share their exponent with subnormal numbers
        counts[0] -= sizes.numel() - sizes.count_nonzero()
    counts[-1] = 0  # NaN and Inf
    return counts


def bins_of(sizes: torch.Tensor) -> torch.Tensor:
    """Return the bin of each element, by size; `HISTOGRAM_BINS` for zeros, NaN and Inf, which no bin counts.

    Args:
        sizes: Elements without their sign, float32 or float64.
    """
    layout = _FORMATS[sizes.dtype]
    exponents = sizes.view(layout.bits) >> layout.mantissa
    counted = (sizes > 0) & (exponents < layout.exponents - 1)
    return _bin_of(exponents, layout).where(counted, HISTOGRAM_BINS)


def _count_elsewhere(sizes: torch.Tensor) -> torch.Tensor:
    """Count on another device, int64 [B]: `bincount` would make the host wait for it."""
    bins = bins_of(sizes)
    return torch.stack([(bins == index).sum() for index in range(HISTOGRAM_BINS)])


@cache
def _bins_of_exponents(dtype: torch.dtype) -> torch.Tensor:
    """Return the bin of each biased exponent of a dtype, int64 [exponents] on the CPU."""
    layout = _FORMATS[dtype]
    return _bin_of(torch.arange(layout.exponents, device="cpu"), layout)


def _bin_of(exponents: torch.Tensor, layout: _Format) -> torch.Tensor:
    """Return the bins of biased exponents."""
    above_lowest = exponents - (layout.bias + HISTOGRAM_LOWEST_EXPONENT)
    bins = above_lowest.div(HISTOGRAM_EXPONENTS_PER_BIN, rounding_mode="floor")
    return bins.clamp(0, HISTOGRAM_BINS - 1)
