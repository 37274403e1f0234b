"""Cuts as findings: the rules about them differ in which cuts are theirs, and in what they say."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

from whygrad.evidence import Evidence
from whygrad.model import Cut, CutKind, Event, Finding, Parameter, Place, Role, Severity
from whygrad.rules._events import place_in
from whygrad.rules._paths import cut_off, is_without_gradient, numbers, watched
from whygrad.rules._raised import NO_GRADIENT, raised_for
from whygrad.rules._select import holder, names
from whygrad.rules._text import counted, named

FOLLOWS = (
    *("unused-parameter", "unreached-parameter", "zero-gradient", "vanishing-gradient", "constant-loss"),
    *("ddp-unused-parameter", "update-too-small", "decay-dominates"),
)
"""What a cut explains on the parameters behind it."""

_STOPS = (CutKind.NO_GRAD, CutKind.DETACH)  # ways to stop a gradient that say so
_LOST_TERM = "lost_term"  # event: a term of the loss depends on parameters and gives them no gradient
_Members = Sequence[tuple[Parameter, Cut]]


@dataclass(frozen=True, slots=True)
class Case:
    """What is one rule's own about cuts."""

    slug: str
    is_mine: Callable[[Cut], bool]
    line: Callable[[Cut], Place | None]  # the line of a cut to look at
    what: Callable[[Cut], str]  # half a sentence
    fix: Callable[[Cut], str]


def is_checkpoint(cut: Cut) -> bool:
    """Return whether grad mode was off inside a reentrant checkpoint, which is an autograd.Function."""
    off = cut.kind in (CutKind.NO_GRAD, CutKind.CUSTOM)
    return off and "checkpoint" in f"{cut.mode} {cut.operation}".lower()


def cut_findings(evidence: Evidence, case: Case) -> Iterator[Finding]:
    """Yield one finding for each function in which paths are cut, and one for each further term of the loss."""
    found: dict[tuple[object, ...], list[tuple[Parameter, Cut]]] = {}
    stopped = cut_off(evidence)
    for parameter, cut in stopped:
        if case.is_mine(cut):
            place = case.line(cut)
            where = ("", "") if place is None else (place.file, place.function)
            found.setdefault((cut.kind, *where), []).append((parameter, cut))
    yield from (_of_parameters(evidence, case, members) for members in found.values())
    said = {_line_number(case.line(cut)) for _, cut in stopped}
    for event in evidence.events_of(_LOST_TERM):
        cut, parameters = _cut_in(event), _learning(evidence, event)
        repeated = _line_number(case.line(cut)) in said
        if case.is_mine(cut) and parameters and not repeated and not _is_carried(cut):
            yield _of_term(case, cut, parameters)


def _line_number(place: Place | None) -> tuple[str, int] | None:
    return None if place is None else (place.file, place.line)


# -- parameters without a gradient -------------------------------------------------------------------------------------


def _of_parameters(evidence: Evidence, case: Case, members: _Members) -> Finding:
    parameters = tuple(parameter for parameter, _ in members)
    cut = _shared(case, members)
    places = _places(evidence, case, cut, members)
    return Finding(
        rule=case.slug,
        severity=Severity.INFO if _is_target(evidence, members) else _severity(evidence, parameters),
        tensors=names(parameters),
        place=places[0] if places else None,
        message=f"{_state(evidence, parameters)}: {case.what(cut)}",
        fix=case.fix(cut),
        evidence={**numbers(parameters), "operation": cut.operation, "inferred": cut.inferred},
        also=places[1:],
    )


def _shared(case: Case, members: _Members) -> Cut:
    """Return the cut at the line that most parameters share."""
    lines = [case.line(cut) for _, cut in members]
    return max((cut for _, cut in members), key=lambda cut: lines.count(case.line(cut)))


def _places(evidence: Evidence, case: Case, first: Cut, members: _Members) -> tuple[Place, ...]:
    """Return the line to look at, then those of the other parameters, then where else values passed or were cut."""
    lines = (case.line(cut) for cut in (first, *(cut for _, cut in members)))
    passed = (place for _, cut in members for place in (cut.place, cut.mode_at, cut.reentry))
    further = (case.line(cut) for parameter, _ in members for cut in evidence.cuts_of(parameter))
    return tuple(dict.fromkeys(place for place in (*lines, *passed, *further) if place is not None))


def _state(evidence: Evidence, parameters: Sequence[Parameter]) -> str:
    who, first = named(names(parameters)), parameters[0]
    total = evidence.total(Role.GRADIENT, first.id)
    if is_without_gradient(first) or total is None:
        return f"{who} got no gradient{watched(parameters)}"
    return f"the gradient of {who} is exactly zero at all {counted(total.steps, 'recorded step')}"


def _severity(evidence: Evidence, parameters: Sequence[Parameter]) -> Severity:
    """Return an info for what is kept as it is on purpose: it runs in eval mode, or was loaded as the rest was not."""
    if raised_for(evidence, NO_GRADIENT) is not None:
        return Severity.ERROR
    learning = [p for p in evidence.parameters if p.optimizers and p.gradient_steps]
    loaded = all(p.loaded for p in parameters) and not all(p.loaded for p in learning)
    rests = all(_mode(evidence, parameter) is False for parameter in parameters)
    wakes = any(_mode(evidence, parameter) for parameter in learning)
    return Severity.INFO if loaded or (rests and wakes) else Severity.ERROR


def _is_target(evidence: Evidence, members: _Members) -> bool:
    """Return whether a whole network makes what others of its optimizer learn to predict: a fixed target, a teacher.

    A single layer may be a codebook or a set of centres, which is to learn.
    """
    holders = {holder for parameter, _ in members for holder in parameter.optimizers}
    learning = any(p.gradient_steps and not holders.isdisjoint(p.optimizers) for p in evidence.parameters)
    network = len({parameter.module for parameter, _ in members}) > 1 and _is_whole(evidence, members)
    return learning and network and all(cut.as_target and cut.kind in _STOPS for _, cut in members)


def _is_whole(evidence: Evidence, members: _Members) -> bool:
    """Return whether nothing learns in the module that contains them all."""
    roots = {parameter.root for parameter, _ in members}
    paths = [parameter.module.split(".") for parameter, _ in members]
    common = [names[0] for names in takewhile(lambda names: len(set(names)) == 1, zip(*paths, strict=False))]
    return not any(
        p.gradient_steps and p.root in roots and p.module.split(".")[: len(common)] == common
        for p in evidence.parameters
    )


def _mode(evidence: Evidence, parameter: Parameter) -> bool | None:
    module = holder(evidence, parameter)
    return None if module is None else module.training


# -- terms of the loss without a gradient ------------------------------------------------------------------------------


def _cut_in(event: Event) -> Cut:
    detail: dict[str, Any] = event.detail
    return Cut(
        id=-1,
        parameter=-1,
        kind=CutKind(detail["cut"]),
        operation=event.subject,
        place=event.place,
        reentry=place_in(event, "reentry"),
        mode=detail.get("mode", ""),
        mode_at=place_in(event, "mode_at"),
        inferred=detail.get("inferred", False),
    )


def _learning(evidence: Evidence, event: Event) -> list[Parameter]:
    """Return the parameters of a lost term that an optimizer trains by other terms."""
    wanted = event.detail.get("parameters", [])
    return [p for p in evidence.parameters if p.id in wanted and p.requires_grad and p.optimizers]


def _is_carried(cut: Cut) -> bool:
    """Return whether a number comes back further up in a loop: it is one of an earlier step, a mere number by now."""
    left, back = cut.place, cut.reentry
    if left is None or back is None:
        return False
    return (left.file, left.function) == (back.file, back.function) and back.line < left.line


def _of_term(case: Case, cut: Cut, parameters: Sequence[Parameter]) -> Finding:
    """Return the finding about a term; a detach() on a whole term is hardly an accident."""
    known = dict.fromkeys((case.line(cut), cut.place, cut.mode_at, cut.reentry))
    places = tuple(place for place in known if place is not None)
    return Finding(
        rule=case.slug,
        severity=Severity.INFO if cut.kind is CutKind.DETACH else Severity.WARNING,
        tensors=names(parameters),
        place=places[0] if places else None,
        message=f"a term of the loss gives {named(names(parameters))} no gradient: {case.what(cut)}",
        fix=case.fix(cut),
        evidence={**numbers(parameters), "operation": cut.operation, "inferred": cut.inferred},
        also=places[1:],
    )
