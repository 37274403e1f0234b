"""What the rules about the input of losses share."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from whygrad.evidence import Evidence
from whygrad.model import Event, LossCall, Parameter, Place, Role
from whygrad.rules._sizes import is_taught

PROBABILITY_SLACK = 1e-3
"""How far sums of probabilities may be from 1: float16 rounds to 0.0005 there."""

SOFTMAXES = ("softmax", "softmin", "gumbel_softmax")
SIGMOIDS = ("sigmoid", "sigmoid_", "hardsigmoid")
RELUS = ("relu", "relu_", "relu6", "clamp(min=0)")
TANHS = ("tanh", "tanh_", "hardtanh")

_MIN_CALLS = 3
_MIN_ZERO_STEPS = 5


def trained(evidence: Evidence, ids: Iterable[int]) -> list[Parameter]:
    """Return the parameters of these ids that something is to train and that get gradients, in forward order."""
    wanted = set(ids)
    return [p for p in evidence.parameters_in_order if p.id in wanted and is_taught(evidence, p)]


def is_probability(call: LossCall) -> bool:
    """Return whether the input of a loss holds probabilities: from 0 to 1, adding up to 1 over the classes."""
    return is_unit(call) and abs(call.sum_low - 1) < PROBABILITY_SLACK and abs(call.sum_high - 1) < PROBABILITY_SLACK


def is_unit(call: LossCall) -> bool:
    """Return whether all of the input lay between 0 and 1."""
    return call.low >= -PROBABILITY_SLACK and call.high <= 1 + PROBABILITY_SLACK


def classes_of(call: LossCall) -> int:
    """Return the number of classes in the input of a loss over classes."""
    return call.shape[1] if len(call.shape) > 1 else call.shape[0] if call.shape else 0


def seen_often(calls: int) -> bool:
    """Return whether a call was seen often enough to judge from it."""
    return calls >= _MIN_CALLS


def gets_zeros(evidence: Evidence, parameter: Parameter) -> bool:
    """Return whether the gradient of a parameter was zero in every recorded step."""
    total = evidence.total(Role.GRADIENT, parameter.id)
    return total is not None and total.zero_steps == total.steps >= _MIN_ZERO_STEPS


def ids_in(event: Event) -> Sequence[int]:
    """Return the ids of the parameters that an event is about."""
    return tuple(event.detail.get("parameters", ()))


def places(*found: Place | None) -> tuple[Place, ...]:
    """Return the places that are known, each line once."""
    lines: dict[tuple[str, int], Place] = {}
    for place in found:
        if place is not None:
            lines.setdefault((place.file, place.line), place)
    return tuple(lines.values())


def shape(sizes: Sequence[int]) -> str:
    """Return a shape as a sentence shows it."""
    return f"[{', '.join(map(str, sizes))}]"


def elements(sizes: Sequence[int]) -> int:
    """Return the number of elements of a shape."""
    return math.prod(sizes)
