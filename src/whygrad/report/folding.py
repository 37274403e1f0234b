"""Many findings to few: one per place, consequences inside their cause, in the order to act on them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import groupby

from whygrad.model import Finding, Place, Severity
from whygrad.report.suppression import is_suppressed
from whygrad.rules import Rule

Rules = Mapping[str, Rule]


def arranged(found: Iterable[Finding], rules: Rules, parameters: frozenset[str]) -> tuple[Finding, ...]:
    """Merge, fold, silence and order the findings of a run.

    Args:
        found: What the rules said.
        rules: Slug -> rule; says what explains what.
        parameters: Names of the parameters of the program's models.
    """
    return ordered(fold(merged(found), rules, parameters), rules, parameters)


def merged(found: Iterable[Finding]) -> list[Finding]:
    """Join the findings of one rule and severity at one place; where there is no place, those on the same tensors."""
    buckets: dict[tuple[object, ...], list[Finding]] = {}
    for finding in found:
        place = finding.place
        where = finding.tensors if place is None else (place.file, place.line)
        buckets.setdefault((finding.rule, finding.severity, place is None, where), []).append(finding)
    return [_joined(same) for same in buckets.values()]


def _joined(same: Sequence[Finding]) -> Finding:
    first = same[0]
    tensors = tuple(dict.fromkeys(name for finding in same for name in finding.tensors))
    also = tuple(dict.fromkeys(place for finding in same for place in finding.also))
    consequences = tuple(consequence for finding in same for consequence in finding.consequences)
    message = _counting(first, len(tensors) - len(first.tensors))
    return replace(first, tensors=tensors, also=also, consequences=consequences, message=message)


def _counting(finding: Finding, further: int) -> str:
    """Return the message with "(+3)" behind the first tensor it names."""
    if further == 0 or not finding.tensors:
        return finding.message
    name = f"`{finding.tensors[0]}`"
    counted = re.compile(re.escape(name) + r"( \(\+\d+\))?")  # a rule may count already
    total = len(finding.tensors) - 1 + further
    return counted.sub(lambda _: f"{name} (+{total})", finding.message, count=1)


def fold(found: Sequence[Finding], rules: Rules, parameters: frozenset[str]) -> list[Finding]:
    """Put each finding that another one explains into the consequences of that one.

    Chains end at their first cause; of findings that explain each other, the most important one is the cause. A cause
    is as severe as the worst it explains, except that an info explains no more than infos: what is meant does not
    excuse what is broken. A silenced finding takes its consequences with it.
    """
    ranked = sorted(found, key=lambda finding: _importance(finding, parameters))
    causes = {
        effect: cause
        for effect, finding in enumerate(ranked)
        if (cause := _cause(effect, finding, ranked, rules, parameters)) is not None
    }
    families: dict[int, list[Finding]] = {}
    for index, finding in enumerate(ranked):
        root = _first_cause(index, causes)
        family = families.setdefault(root, [ranked[root]])
        if index != root:
            family.append(finding)
    return [_family(members[0], members[1:]) for members in families.values() if not is_suppressed(members[0])]


def _cause(
    effect: int, finding: Finding, ranked: Sequence[Finding], rules: Rules, parameters: frozenset[str]
) -> int | None:
    """Return the most important finding that explains this one."""
    others = (index for index in range(len(ranked)) if index != effect)
    return next((index for index in others if _explains(ranked[index], finding, rules, parameters)), None)


def _explains(cause: Finding, effect: Finding, rules: Rules, parameters: frozenset[str]) -> bool:
    if not _explains_rule(cause, effect, rules):
        return False
    if cause.severity is Severity.INFO and effect.severity is not Severity.INFO:
        return False
    tensors = frozenset(cause.tensors)
    covers_all = not tensors or (cause.severity is Severity.ERROR and tensors >= parameters)
    return covers_all or not tensors.isdisjoint(effect.tensors)


def _explains_rule(cause: Finding, effect: Finding, rules: Rules) -> bool:
    rule = rules.get(cause.rule)
    return rule is not None and effect.rule != cause.rule and effect.rule in rule.explains


def _first_cause(index: int, causes: Mapping[int, int]) -> int:
    path: list[int] = []
    while index in causes and index not in path:
        path.append(index)
        index = causes[index]
    return min(path[path.index(index) :]) if index in path else index


def _family(cause: Finding, explained: Iterable[Finding]) -> Finding:
    kept = tuple(finding for finding in explained if not is_suppressed(finding))
    severity = min((cause.severity, *(finding.severity for finding in kept)), key=lambda severity: severity.order)
    return replace(cause, severity=severity, consequences=(*cause.consequences, *kept))


def ordered(found: Iterable[Finding], rules: Rules, parameters: frozenset[str]) -> tuple[Finding, ...]:
    """Sort by severity, then cause before consequence, then share of the parameters affected.

    The order is total: it does not depend on the order of `found`.
    """
    ranked = sorted(found, key=lambda finding: _importance(finding, parameters))
    result: list[Finding] = []
    for _, level in groupby(ranked, key=lambda finding: finding.severity):
        result += _causes_first(list(level), rules)
    return tuple(result)


def _causes_first(pending: list[Finding], rules: Rules) -> list[Finding]:
    result = []
    while pending:
        free = (f for f in pending if not any(_explains_rule(other, f, rules) for other in pending))
        chosen = next(free, pending[0])  # rules that explain each other in a circle: the most important one
        pending.remove(chosen)
        result.append(chosen)
    return result


def _importance(finding: Finding, parameters: frozenset[str]) -> tuple[object, ...]:
    affected = len(parameters.intersection(finding.tensors)) if finding.tensors else len(parameters)
    place = finding.place or Place("", 0)
    where = (place.file, place.line, finding.tensors)
    return (finding.severity.order, -affected, finding.rule, *where, finding.message)
