"""Losses that stand still, and outputs that hardly differ from sample to sample."""

from __future__ import annotations

from collections.abc import Sequence

from whygrad.evidence import Evidence
from whygrad.model import Parameter, Role
from whygrad.rules._once import once
from whygrad.rules._select import holder
from whygrad.rules._sizes import median, outputs_by, samples

_STILL = 0.9  # of the loss at the start
_MIN_STEPS = 20


def is_standing_still(evidence: Evidence, parameters: Sequence[Parameter]) -> bool:
    """Return whether the loss of what moves the parameters is, in the last quarter, what it was in the first."""
    held = {optimizer for parameter in parameters for optimizer in parameter.optimizers}
    return _stands_still(evidence, frozenset(held))


@once
def _stands_still(evidence: Evidence, optimizers: frozenset[int]) -> bool:
    steps = (s for s in evidence.steps if s.loss is not None and (s.optimizer is None or s.optimizer in optimizers))
    losses = [abs(step.loss) for step in evidence.evenly(steps) if step.loss is not None]
    return len(losses) >= _MIN_STEPS and is_level(losses)


def is_level(losses: Sequence[float]) -> bool:
    """Return whether losses, none of them negative, are in the last quarter what they were in the first."""
    quarter = max(1, len(losses) // 4)
    return bool(losses) and median(losses[-quarter:]) >= _STILL * median(losses[:quarter]) > 0


def variation_profile(evidence: Evidence, layers: Sequence[Parameter]) -> list[float]:
    """Return how much the outputs of layers differ between samples, in forward order, in the later half of the run."""
    measured = samples(evidence, Role.VARIATION)
    profile = []
    for layer in layers:
        found = [measured[o.id] for o in outputs_by(evidence, holder(evidence, layer)) if o.id in measured]
        if found:
            steps = sorted(found[0])
            profile.append(median(found[0][step].rms for step in steps[len(steps) // 2 :]))
    return profile
