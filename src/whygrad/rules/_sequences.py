"""Gradients over time: at the first call of a recurrent module against the last."""

from __future__ import annotations

from collections.abc import Iterator

from whygrad.evidence import Evidence
from whygrad.model import Finding, Output, Parameter, Role, Severity
from whygrad.rules._select import names
from whygrad.rules._sizes import is_taught, line_of, median, samples
from whygrad.rules._stillness import is_standing_still
from whygrad.rules._text import named, number

_SLUG = "vanishing-gradient"
_FORGOTTEN = 1e-4  # of the gradient at the last call
_MIN_STEPS = 5
_RECURRENT = ("RNN", "LSTM", "GRU")


def forgotten(evidence: Evidence) -> Iterator[Finding]:
    """Yield the recurrent parts of a model whose first inputs get next to no gradient while the loss stands still."""
    ratios = time_ratios(evidence)
    known = evidence.module_by_id
    for output in sorted(evidence.outputs, key=lambda each: each.order):
        found = ratios.get(output.id, [])
        module = known.get(output.module)
        if module is None or len(found) < _MIN_STEPS or not median(found) < _FORGOTTEN:
            continue
        hit = _recurrent(evidence, output)
        if hit and is_standing_still(evidence, hit):
            yield _finding(evidence, output, hit, found)
            return


def time_ratios(evidence: Evidence) -> dict[int, list[float]]:
    """Return id of an output -> step by step, its gradient at the first call against that at the last."""
    early, late = (samples(evidence, role) for role in (Role.EARLY_GRADIENT, Role.LATE_GRADIENT))
    return {
        number: [first[step].l2 / late[number][step].l2 for step in sorted(first) if late[number][step].l2 > 0]
        for number, first in early.items()
        if number in late
    }


def _recurrent(evidence: Evidence, output: Output) -> list[Parameter]:
    """Return the parameters that are used at every time step: of the module, or of the recurrent layer behind it."""
    taught = [p for p in evidence.parameters_in_order if is_taught(evidence, p) and p.order is not None]
    module = evidence.module_by_id[output.module]
    inside = [p for p in taught if p.root == module.root and _lies_in(p.module, module.name)]
    if inside and module.type != "Embedding":
        return inside
    return [p for p in taught if p.root == module.root and p.module_type in _RECURRENT]


def _lies_in(inner: str, outer: str) -> bool:
    return not outer or inner == outer or inner.startswith(f"{outer}.")


def _finding(evidence: Evidence, output: Output, hit: list[Parameter], ratios: list[float]) -> Finding:
    ratio = median(ratios)
    return Finding(
        rule=_SLUG,
        severity=Severity.WARNING,
        tensors=names(hit),
        place=line_of(evidence, hit),
        message=f"at the first time step the gradient of `{output.name}` is {number(ratio)} of that at the last one, "
        f"and the loss stands still: {named(names(hit))} can't learn from what lies that far back",
        fix="Use a gated cell (LSTM, GRU), start the recurrent matrix orthogonal, or shorten the way by attention or "
        "by a loss at every step",
        evidence={"ratio": ratio, "largest_ratio": max(ratios), "sampled_steps": len(ratios)},
    )
