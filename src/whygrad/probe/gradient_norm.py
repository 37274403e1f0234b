"""The gradients of an optimizer as a backward pass leaves them, before anybody changes them."""

# S = statistics, T = tensors

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from whygrad.model import STATISTICS
from whygrad.probe.optimizers import held_tensors
from whygrad.probe.parameters import ParameterTable
from whygrad.stats.kernel import is_supported, many_statistics

_SQUARES = STATISTICS.index("sum_squares")
_NONFINITE = [STATISTICS.index("nans"), STATISTICS.index("infs")]
_POWERS = {"sum": 1, "sum_squares": 2, "sum_abs": 1, "max_abs": 1}  # of a factor of all elements; 0 for the others

_ROUNDING = 1e-6  # of an unscaled gradient


@dataclass(frozen=True, slots=True)
class Norms:
    """What some gradients were."""

    ids: list[int]  # of the parameters, [T]
    matrix: torch.Tensor  # statistics, float64 [T, S], on the CPU

    @property
    def total(self) -> float:
        """Return the norm over all of them, which is Inf where one of them is not finite."""
        if self.matrix[:, _NONFINITE].any():
            return math.inf
        return math.sqrt(float(self.matrix[:, _SQUARES].sum()))

    def is_same_as(self, ids: Sequence[int], matrix: torch.Tensor) -> bool:
        """Return whether other gradients have the same statistics, but for rounding."""
        return self.ids == list(ids) and torch.allclose(self.matrix, matrix, rtol=_ROUNDING, atol=0.0)


def gradient_norms(optimizer: torch.optim.Optimizer, parameters: ParameterTable, scale: float) -> Norms | None:
    """Measure an optimizer's gradients, divided by a loss scale; return None where they are elsewhere, or none."""
    ids: list[int] = []
    gradients: list[torch.Tensor] = []
    for tensor in held_tensors(optimizer):
        gradient, entry = tensor.grad, parameters.get(tensor)
        if gradient is None or entry is None or gradient.layout is not torch.strided or not is_supported(gradient):
            continue
        if gradient.device.type != "cpu":
            return None
        ids.append(entry.id)
        gradients.append(gradient)
    if not gradients:
        return None
    matrix = many_statistics(gradients)
    if scale != 1.0:
        factors = [scale ** _POWERS.get(name, 0) for name in STATISTICS]
        matrix /= torch.tensor(factors, dtype=torch.float64, device="cpu")
    return Norms(ids, matrix)
