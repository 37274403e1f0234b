"""The norms of an optimizer's gradients as a backward pass leaves them, before anybody changes them."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from whygrad.model import STATISTICS
from whygrad.probe.optimizers import held_tensors
from whygrad.probe.parameters import ParameterTable
from whygrad.stats.kernel import is_supported

_COUNT, _SQUARES = STATISTICS.index("count"), STATISTICS.index("sum_squares")
_ZEROS, _INFS = STATISTICS.index("zeros"), STATISTICS.index("infs")


@dataclass(frozen=True, slots=True)
class Norms:
    """Norms of some gradients, [T]."""

    ids: list[int]  # of the parameters
    counts: list[int]  # elements
    values: torch.Tensor  # float64, on the CPU

    @property
    def total(self) -> float:
        """Return the norm over all of them."""
        return float(torch.linalg.vector_norm(self.values))

    def matrix(self) -> torch.Tensor:
        """Return them as statistics, float64 [T, S], of which the counts, the squares and whole zeros are known."""
        matrix = torch.zeros(len(self.ids), len(STATISTICS), dtype=torch.float64, device="cpu")
        counts = torch.tensor(self.counts, dtype=torch.float64, device="cpu")
        finite = self.values.isfinite()
        matrix[:, _COUNT] = counts
        matrix[:, _SQUARES] = self.values.square().where(finite, 0.0)
        matrix[:, _ZEROS] = counts.where(self.values == 0, 0.0)
        matrix[:, _INFS] = (~finite).double()
        return matrix


def gradient_norms(optimizer: torch.optim.Optimizer, parameters: ParameterTable, scale: float) -> Norms | None:
    """Return the norms of an optimizer's gradients, divided by a loss scale; None where they are elsewhere, or none."""
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
    norms = torch.stack(torch._foreach_norm(gradients, 2, dtype=torch.float64))
    return Norms(ids, [gradient.numel() for gradient in gradients], norms / scale)
