"""Where the path of the gradient ends, and for whom that is a fault.

Stop-gradient is everyday practice, so a cut alone is no fault. It is one for a parameter that something is to train
and that no gradient reached by any path, in any step.
"""

from __future__ import annotations

from collections.abc import Sequence

from whygrad.evidence import Evidence
from whygrad.model import Cut, CutKind, Parameter, PathEnd, Role
from whygrad.rules._raised import NO_GRADIENT, raised_for
from whygrad.rules._select import has_moved
from whygrad.rules._text import counted, passes

_MIN_ZERO_STEPS = 3
_GONE = (PathEnd.CUT, PathEnd.IGNORED, PathEnd.UNUSED, PathEnd.UNDEFINED)
_FLAT = (CutKind.NONDIFFERENTIABLE, CutKind.CUSTOM)


def is_without_gradient(parameter: Parameter) -> bool:
    """Return whether no gradient came to a parameter, by any path in any step, and the traced steps show why."""
    reached = parameter.reached and parameter.path is not PathEnd.UNDEFINED
    return parameter.path in _GONE and not reached and not parameter.gradient_steps


def is_meant(evidence: Evidence, parameter: Parameter) -> bool:
    """Return whether something is to train a parameter, and nothing else moves it.

    An optimizer holds it; where the program has none, others of its model get gradients, or backward raised.
    """
    if not parameter.requires_grad or parameter.stale or has_moved(evidence, parameter):
        return False
    if evidence.optimizers:
        return bool(parameter.optimizers)
    siblings = (p for p in evidence.parameters if p.root == parameter.root)
    return raised_for(evidence, NO_GRADIENT) is not None or any(p.reached or p.gradient_steps for p in siblings)


def cut_off(evidence: Evidence) -> list[tuple[Parameter, Cut]]:
    """Return the parameters that were to learn and are cut off, in forward order, each with its first cut.

    Of an operation whose derivative is zero everywhere, the gradient is there and zero.
    """
    found = []
    for parameter in evidence.parameters_in_order:
        cut = _cut_of(evidence, parameter)
        if cut is not None and is_meant(evidence, parameter):
            found.append((parameter, cut))
    return found


def _cut_of(evidence: Evidence, parameter: Parameter) -> Cut | None:
    cuts = evidence.cuts_of(parameter)
    if is_without_gradient(parameter):
        ended = parameter.path in (PathEnd.CUT, PathEnd.UNDEFINED)
        return cuts[0] if cuts and ended else None
    flat = (cut for cut in cuts if cut.kind in _FLAT)
    return next(flat, None) if is_zero(evidence, parameter) else None


def is_zero(evidence: Evidence, parameter: Parameter) -> bool:
    """Return whether the gradient of a parameter is there and was zero in every recorded step."""
    total = evidence.total(Role.GRADIENT, parameter.id)
    return total is not None and total.zero_steps == total.steps >= _MIN_ZERO_STEPS


def watched(parameters: Sequence[Parameter]) -> str:
    """Return how long parameters were watched: " in 200 steps"; nothing where backward raised at once."""
    steps = max(parameter.steps for parameter in parameters)
    walked = max(parameter.walked for parameter in parameters)
    return f" in {counted(steps, 'step')}" if steps else f" in {passes(walked)}" if walked else ""


def numbers(parameters: Sequence[Parameter]) -> dict[str, int]:
    """Return what was counted about parameters, for the evidence of a finding."""
    return {
        "steps": max(parameter.steps for parameter in parameters),
        "gradient_steps": max(parameter.gradient_steps for parameter in parameters),
        "backward_passes": max(parameter.walked for parameter in parameters),
        "reached": max(parameter.reached for parameter in parameters),
        "elements": sum(parameter.numel for parameter in parameters),
    }
