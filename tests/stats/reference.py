"""Statistics by hand: plain Python floats, no torch arithmetic; and tensors of every kind to measure."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable

import torch

from whygrad.model import Statistics

ROUNDING = 1e-6  # of `sum_abs` for the sum, relative for `sum_abs` and `sum_squares`

FLOATS = (torch.float64, torch.float32, torch.float16, torch.bfloat16)


def by_hand(tensor: torch.Tensor) -> Statistics:
    """Return the statistics of a tensor, element by element."""
    numbers = [float(x) for x in tensor.detach().to_dense().to(torch.float64).flatten().tolist()]
    finite = [x for x in numbers if math.isfinite(x)]
    return Statistics(
        count=len(numbers),
        sum=math.fsum(finite),
        sum_squares=math.fsum(x * x for x in finite),
        sum_abs=math.fsum(abs(x) for x in finite),
        max_abs=max((abs(x) for x in finite), default=0.0),
        zeros=sum(x == 0 for x in numbers),
        nans=sum(math.isnan(x) for x in numbers),
        infs=sum(math.isinf(x) for x in numbers),
    )


def assert_same(row: torch.Tensor, expected: Statistics) -> None:
    """Counts and the maximum exactly, sums within the stated rounding."""
    found = Statistics(*row.tolist())
    exact = ("count", "max_abs", "zeros", "nans", "infs")
    assert {name: getattr(found, name) for name in exact} == {name: getattr(expected, name) for name in exact}
    assert math.isclose(found.sum_abs, expected.sum_abs, rel_tol=ROUNDING)
    assert math.isclose(found.sum_squares, expected.sum_squares, rel_tol=ROUNDING)
    assert math.isclose(found.sum, expected.sum, abs_tol=ROUNDING * expected.sum_abs)


def quiet_sparse(make: Callable[[], torch.Tensor]) -> torch.Tensor:
    """Make a sparse tensor without the warnings that torch has for whoever makes one."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return make()


def noise(*shape: int, dtype: torch.dtype = torch.float32, seed: int = 0) -> torch.Tensor:
    """Return normal noise without touching the global generator."""
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).to(dtype)
