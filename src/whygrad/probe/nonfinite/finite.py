"""Is every element of a tensor finite: a question that is asked of everything that a step computes.

Only tensors on the CPU are looked at, unless the user asked for more: an accelerator would have to be waited for.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch

from whygrad.stats.kernel import is_supported

_REAL = frozenset({torch.float32, torch.float64, torch.float16, torch.bfloat16})
_COMPLEX = frozenset({torch.complex64, torch.complex128})
_PLAIN = frozenset({torch.Tensor, torch.nn.Parameter})


@dataclass(slots=True)
class Finite:
    """Answers the question; one per session."""

    anywhere: bool = False  # on accelerators too, at the price of waiting for them

    def is_broken(self, tensor: torch.Tensor) -> bool:
        """Return whether some element is NaN or Inf; False where that can't be told.

        A sum is quick to compute and is not finite where an element is not. Where it only overflowed, a second look at
        the elements tells.
        """
        real = self._real(tensor)
        if real is None:
            return False
        total = float(real) if real.numel() == 1 else float(real.sum())
        return total - total != 0 and not bool(torch.isfinite(real).all())

    def has_nan(self, tensor: torch.Tensor) -> bool:
        """Return whether some element is NaN."""
        real = self._real(tensor)
        return real is not None and bool(torch.isnan(real).any())

    def _real(self, tensor: torch.Tensor) -> torch.Tensor | None:
        dtype = tensor.dtype
        if dtype not in _REAL and dtype not in _COMPLEX:
            return None
        if type(tensor) not in _PLAIN or not (tensor.is_cpu or self.anywhere):
            return None
        if tensor.layout is not torch.strided or not is_readable(tensor):
            return None
        plain = tensor.detach()
        return torch.view_as_real(plain.resolve_conj()) if dtype in _COMPLEX else plain


def is_readable(tensor: torch.Tensor) -> bool:
    """Return whether the elements of a strided tensor are there to be read."""
    if tensor.is_complex():
        return not tensor.is_meta and tensor.untyped_storage().size() > 0
    return is_supported(tensor)


def describe(tensor: torch.Tensor) -> dict[str, float | int | str]:
    """Return what a message says about an input of an operation: the range of its finite values, and its zeros."""
    values = tensor.detach()
    found: dict[str, float | int | str] = {"dtype": str(values.dtype).removeprefix("torch."), "count": values.numel()}
    if values.is_complex() or not values.numel():
        return found
    finite = values[torch.isfinite(values)]
    if finite.numel():
        low, high = float(finite.min()), float(finite.max())
        found |= {"low": low, "high": high, "zeros": int((values == 0).sum())}
    return {key: value for key, value in found.items() if not isinstance(value, float) or math.isfinite(value)}
