"""Modules that compute something else in eval mode than in training mode."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn.modules.batchnorm import _NormBase
from torch.nn.modules.dropout import _DropoutNd


def has_modes(module: nn.Module | None) -> bool:
    """Return whether the mode of a module decides what it computes: Dropout, a norm with running statistics."""
    if isinstance(module, _DropoutNd):
        return module.p > 0
    if isinstance(module, nn.RNNBase | nn.MultiheadAttention):
        return float(module.dropout) > 0
    return isinstance(module, _NormBase) and module.track_running_stats


def is_fresh(module: nn.Module | None) -> bool:
    """Return whether the running statistics of a normalisation are those it was made with: no batch has set them."""
    if not isinstance(module, _NormBase) or not module.track_running_stats:
        return False
    mean, batches = module.running_mean, module.num_batches_tracked
    if mean is None or batches is None or mean.device.type != "cpu" or batches.device.type != "cpu":
        return False
    return not int(batches) and not bool(torch.count_nonzero(mean))
