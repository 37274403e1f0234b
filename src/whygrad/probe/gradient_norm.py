"""The norm of an optimizer's gradients as a backward pass leaves them, before anybody changes them."""

from __future__ import annotations

import torch

from whygrad.probe.optimizers import held_tensors
from whygrad.stats.kernel import is_supported


def gradient_norm(optimizer: torch.optim.Optimizer) -> float | None:
    """Return the norm over all gradients of an optimizer; None where they are elsewhere, or none can be measured."""
    found = (tensor.grad for tensor in held_tensors(optimizer))
    gradients = [g for g in found if g is not None and g.layout is torch.strided and is_supported(g)]
    if not gradients or any(gradient.device.type != "cpu" for gradient in gradients):
        return None
    norms = torch._foreach_norm(gradients, 2, dtype=torch.float64)
    return float(torch.linalg.vector_norm(torch.stack(norms)))
