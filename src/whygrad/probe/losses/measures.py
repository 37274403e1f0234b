"""What a loss function was fed with: numbers of its input and its target, read at the call."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import torch

from whygrad.probe.losses.names import CLASS_LOSSES
from whygrad.probe.losses.values import Shape, Value
from whygrad.stats.kernel import refusal

MAX_ELEMENTS = 1 << 18  # of a tensor that are looked at


@dataclass(frozen=True, slots=True)
class Numbers:
    """Sizes of the elements of a tensor; sums run over its classes, where it has a dimension for them."""

    low: float = math.nan
    high: float = math.nan
    sum_low: float = math.nan
    sum_high: float = math.nan
    exp_low: float = math.nan  # of the sums of exp(x)
    exp_high: float = math.nan
    negative: float = math.nan  # share of elements below 0, by more than rounding
    above_one: float = math.nan
    below_minus_one: float = math.nan


@dataclass(slots=True, eq=False)
class LossLook:
    """One call of a loss function, or one difference of a prediction and a target."""

    function: str
    reduction: str
    input: Value
    target: Value
    result_shape: Shape  # that input and target broadcast to
    numbers: Numbers
    target_numbers: Numbers
    target_is_index: bool


_SLACK = 1e-3  # of 0 and of 1
UNKNOWN = Numbers()


def numbers_of(tensor: torch.Tensor, classes: int | None) -> Numbers:
    """Return the numbers of a tensor.

    Args:
        tensor: Any tensor.
        classes: Its dimension of classes, if it has one.
    """
    values = readable(tensor)
    if values is None:
        return UNKNOWN
    values = values.to(torch.float64)
    if not bool(values.isfinite().all()):
        return UNKNOWN
    low, high = (float(bound) for bound in values.aminmax())
    shares = (values < -_SLACK, values > 1 + _SLACK, values < -1 - _SLACK)
    negative, above, below = (float(share.double().mean()) for share in shares)
    numbers = Numbers(low, high, negative=negative, above_one=above, below_minus_one=below)
    if classes is None or not tensor.is_floating_point():
        return numbers
    sums, exps = values.sum(classes).aminmax(), values.exp().sum(classes).aminmax()
    return replace(
        numbers,
        sum_low=float(sums.min),
        sum_high=float(sums.max),
        exp_low=float(exps.min),
        exp_high=float(exps.max),
    )


def class_dimension(function: str, tensor: torch.Tensor) -> int | None:
    """Return the dimension of classes in a loss's input; None where the function has none."""
    if function in CLASS_LOSSES:
        return 1 if tensor.dim() > 1 else 0
    return tensor.dim() - 1 if function in ("kl_div", "ctc_loss") and tensor.dim() else None


def spread_dimensions(tensor: torch.Tensor) -> tuple[int, ...]:
    """Return the dimensions along which a tensor without a gradient is a distribution: not negative, adding up to 1."""
    values = readable(tensor)
    if values is None or not values.is_floating_point() or values.dim() < 2 or values.shape != tensor.shape:
        return ()
    if bool((values < 0).any()):
        return ()
    dims = [dim for dim in range(values.dim()) if values.shape[dim] > 1]
    return tuple(dim for dim in dims if float((values.sum(dim) - 1).abs().max()) < _SLACK)


def is_all_zero(tensor: torch.Tensor) -> bool:
    """Return whether every element is zero."""
    values = readable(tensor)
    return values is not None and values.numel() == tensor.numel() and not bool(values.any())


def readable(tensor: torch.Tensor) -> torch.Tensor | None:
    """Return a tensor's elements, of a large one the first samples; None where reading would wait or cannot be done."""
    if tensor.device.type != "cpu" or refusal(tensor) is not None or tensor.layout is not torch.strided:
        return None
    if not tensor.numel():
        return None
    values = tensor.detach()
    if values.numel() > MAX_ELEMENTS:
        each = values.numel() // len(values)
        values = values[: max(1, MAX_ELEMENTS // each)]
    return values if values.numel() <= 4 * MAX_ELEMENTS else None
