"""How far updates take the weights, and whether the loss followed: what the rules about the size of updates share."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from whygrad.evidence import Evidence
from whygrad.model import Group, Parameter, Role
from whygrad.rules._once import once
from whygrad.rules._select import optimizers_of
from whygrad.rules._sizes import Samples, median

_QUARTERS = 4
_FLAT = 0.03  # of the loss: it has not fallen by more
_SIGNIFICANT = 2.0  # standard errors


def step_ratios(updates: Samples, weights: Samples, parameter: Parameter) -> dict[int, float]:
    """Return step -> size of the update against the size of the weight before, root mean squares, where it has one."""
    mine, before = updates.get(parameter.id, {}), weights.get(parameter.id, {})
    known = (step for step in mine if step in before and before[step].rms > 0)
    return {step: mine[step].rms / before[step].rms for step in known}


def travel(evidence: Evidence, parameter: Parameter) -> float:
    """Return how far all updates of a parameter would take it if they all went one way, in its own sizes.

    NaN where it was not recorded.
    """
    update, weight = evidence.total(Role.UPDATE, parameter.id), evidence.total(Role.WEIGHT, parameter.id)
    if update is None or weight is None or not update.steps or not weight.statistics.rms > 0:
        return math.nan
    mean = update.statistics.rms  # a mean square: above the mean of the sizes, never below
    return mean * parameter.steps / weight.statistics.rms


def is_weight(parameter: Parameter) -> bool:
    """Return whether a parameter is a matrix, a kernel or a table that gradients come to."""
    return len(parameter.shape) > 1 and parameter.gradient_steps > 0 and parameter.requires_grad


def group_of(evidence: Evidence, parameter: Parameter) -> Group | None:
    """Return the parameter group that steps a parameter; None where several optimizers do, or none."""
    stepping = [optimizer.id for optimizer in optimizers_of(evidence, parameter) if optimizer.steps]
    if len(stepping) != 1:
        return None
    return _groups_by_member(evidence).get((stepping[0], parameter.id))


@once
def _groups_by_member(evidence: Evidence) -> Mapping[tuple[int, int], Group]:
    """Return ids of an optimizer and a parameter -> the first group by which the one held the other."""
    return {(group.optimizer, member): group for group in reversed(evidence.groups) for member in group.parameters}


@once
def losses(evidence: Evidence) -> tuple[float, ...]:
    """Return the losses over the run, where they are finite."""
    even = evidence.evenly(evidence.steps)
    return tuple(step.loss for step in even if step.loss is not None and math.isfinite(step.loss))


def has_fallen(values: Sequence[float]) -> bool:
    """Return whether losses went down from the first quarter to the last, by more than a little and more than noise.

    True where there are too few to tell: nothing is held against such a run.
    """
    count = len(values) // _QUARTERS
    if count < 2:
        return True
    first, last = values[:count], values[-count:]
    noise = max(_spread(first), _spread(last)) / math.sqrt(count)
    return median(first) - median(last) > max(_FLAT * abs(median(first)), _SIGNIFICANT * noise)


def _spread(values: Sequence[float]) -> float:
    """Return a standard deviation that a few outliers do not move."""
    middle = median(values)
    return 1.48 * median(abs(value - middle) for value in values)
