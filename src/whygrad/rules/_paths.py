"""Where the path of the gradient ends: what the rules about it share.

Stop-gradient is everyday practice, so a cut alone is no fault. It is one for a parameter that something is to train
and that no gradient reached by any path, in any step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from whygrad.evidence import Evidence
from whygrad.model import Cut, CutKind, Finding, Parameter, PathEnd, Place, Role, Severity
from whygrad.rules._raised import NO_GRADIENT, raised_for
from whygrad.rules._select import has_moved, holder, names
from whygrad.rules._text import counted, named, passes

FOLLOWS = (
    *("unused-parameter", "unreached-parameter", "zero-gradient", "vanishing-gradient", "constant-loss"),
    *("ddp-unused-parameter", "update-too-small", "decay-dominates"),
)
"""What a cut explains on the parameters behind it."""

_MIN_ZERO_STEPS = 3
_GONE = (PathEnd.CUT, PathEnd.IGNORED, PathEnd.UNUSED, PathEnd.UNDEFINED)


@dataclass(frozen=True, slots=True)
class Group:
    """Parameters whose paths are cut in one way, in one function."""

    parameters: tuple[Parameter, ...]
    cut: Cut  # the one that most of them share
    places: tuple[Place, ...]  # the lines to look at; the first is that of `cut`
    others: tuple[Place, ...]  # where else a value passed on the way
    severity: Severity


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


def is_zero(evidence: Evidence, parameter: Parameter) -> bool:
    """Return whether the gradient of a parameter is there and was zero in every recorded step."""
    total = evidence.total(Role.GRADIENT, parameter.id)
    return total is not None and total.zero_steps == total.steps >= _MIN_ZERO_STEPS


def stopped(evidence: Evidence) -> list[tuple[Parameter, Cut]]:
    """Return the parameters that were to learn and are cut off, in forward order, each with its nearest cut.

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
    flat = (cut for cut in cuts if cut.kind in (CutKind.NONDIFFERENTIABLE, CutKind.CUSTOM))
    return next(flat, None) if is_zero(evidence, parameter) else None


def is_checkpoint(cut: Cut) -> bool:
    """Return whether grad mode was off inside a reentrant checkpoint, which is an autograd.Function."""
    off = cut.kind in (CutKind.NO_GRAD, CutKind.CUSTOM)
    return off and "checkpoint" in f"{cut.mode} {cut.operation}".lower()


def groups(evidence: Evidence, is_mine: Callable[[Cut], bool], line: Callable[[Cut], Place | None]) -> Iterator[Group]:
    """Yield what is cut off in the way of one rule, function by function.

    Args:
        evidence: What to read from.
        is_mine: Whether a cut is a case of the rule.
        line: The line of a cut to look at.
    """
    found: dict[tuple[object, ...], list[tuple[Parameter, Cut]]] = {}
    for parameter, cut in stopped(evidence):
        if is_mine(cut):
            place = line(cut)
            where = ("", "") if place is None else (place.file, place.function)
            found.setdefault((cut.kind, *where), []).append((parameter, cut))
    for members in found.values():
        yield _group(evidence, members, line)


def _group(evidence: Evidence, members: Sequence[tuple[Parameter, Cut]], line: Callable[[Cut], Place | None]) -> Group:
    by_place: dict[Place | None, list[Cut]] = {}
    for _, cut in members:
        by_place.setdefault(line(cut), []).append(cut)
    ranked = sorted(by_place.items(), key=lambda found: -len(found[1]))
    places = tuple(dict.fromkeys(place for place, _ in ranked if place is not None))
    passed = (place for _, cut in members for place in (cut.place, cut.mode_at, cut.reentry))
    others = dict.fromkeys(place for place in passed if place is not None and place not in places)
    parameters = tuple(parameter for parameter, _ in members)
    return Group(parameters, ranked[0][1][0], places, tuple(others), _severity(evidence, parameters))


def _severity(evidence: Evidence, cut_off: Sequence[Parameter]) -> Severity:
    """Return an info for what is kept as it is on purpose: it runs in eval mode, or was loaded as the rest was not."""
    if raised_for(evidence, NO_GRADIENT) is not None:
        return Severity.ERROR
    learning = [p for p in evidence.parameters if p.optimizers and p.gradient_steps]
    loaded = all(p.loaded for p in cut_off) and not all(p.loaded for p in learning)
    modules = [holder(evidence, parameter) for parameter in cut_off]
    rests = all(module is not None and module.training is False for module in modules)
    wakes = any((module := holder(evidence, p)) is not None and module.training is not False for p in learning)
    return Severity.INFO if loaded or (rests and wakes) else Severity.ERROR


def cut_finding(slug: str, evidence: Evidence, group: Group, what: str, fix: str) -> Finding:
    """Return the finding about a group: that no gradient came, and what cuts the path."""
    first, cut = group.parameters[0], group.cut
    who = named(names(group.parameters))
    total = evidence.total(Role.GRADIENT, first.id)
    if is_without_gradient(first) or total is None:
        state = f"{who} got no gradient{watched(group.parameters)}"
    else:
        state = f"the gradient of {who} is exactly zero at all {counted(total.steps, 'recorded step')}"
    return Finding(
        rule=slug,
        severity=group.severity,
        tensors=names(group.parameters),
        place=group.places[0] if group.places else None,
        message=f"{state}: {what}",
        fix=fix,
        evidence={**numbers(group.parameters), "operation": cut.operation, "inferred": cut.inferred},
        also=(*group.places[1:], *group.others),
    )


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
