"""Optimizers that hold nothing which can learn."""

from __future__ import annotations

from collections.abc import Sequence

from whygrad.evidence import Evidence
from whygrad.model import Parameter
from whygrad.rules._raised import NO_GRADIENT, raised_for
from whygrad.rules._select import held_by

_MIN_STEPS = 3
_MANY_STEPS = 20
_NEARLY = 0.95  # of the steps


def is_always_frozen(parameter: Parameter) -> bool:
    """Return whether a parameter had requires_grad=False at every step of its optimizers, or from early on for good."""
    if not parameter.optimizers or parameter.steps < _MIN_STEPS:
        return False
    early = not parameter.requires_grad and parameter.steps >= _MANY_STEPS
    return parameter.frozen_steps >= (_NEARLY if early else 1.0) * parameter.steps


def blocked_optimizers(evidence: Evidence) -> set[int]:
    """Return the ids of the optimizers of which nothing can learn."""
    raised = raised_for(evidence, NO_GRADIENT) is not None
    return {o.id for o in evidence.optimizers if _is_blocked(held_by(evidence, o), raised=raised)}


def _is_blocked(held: Sequence[Parameter], *, raised: bool) -> bool:
    if not raised:
        return all(is_always_frozen(parameter) for parameter in held)
    live = [parameter for parameter in held if parameter.requires_grad]
    traced = any(parameter.uses for parameter in held)
    return not live or (traced and not any(parameter.uses for parameter in live))
