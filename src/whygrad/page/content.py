"""From a run to what its page shows: plain values for the template and for the page's script."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from typing import Any

from whygrad.evidence import Evidence
from whygrad.model import Cut, Finding, Output, Parameter, Role, Statistics
from whygrad.page.moments import moments
from whygrad.page.rulepages import rule_page
from whygrad.page.series import Grid, Track, grid, histograms, thinned, update_ratios
from whygrad.report.names import group
from whygrad.report.states import state
from whygrad.report.verdict import headline
from whygrad.report.view import RunView, parameter_names
from whygrad.report.writing import number, where

MAX_OUTPUTS = 400

_SIZES: dict[str, Callable[[Statistics], float]] = {
    "rms": lambda s: s.rms,
    "mean": lambda s: s.mean,
    "std": lambda s: s.std,
    "zeros": lambda s: s.zero_share,
    "nonfinite": lambda s: s.nonfinite,
}
_OUTPUT_SIZES: dict[str, Callable[[Statistics], float]] = {"rms": lambda s: s.rms, "zeros": lambda s: s.zero_share}


@dataclass(frozen=True, slots=True)
class Card:
    """A finding as a card."""

    rule: str
    severity: str
    message: str
    fix: str
    tensors: tuple[tuple[str, int], ...]  # pattern, how many it stands for
    place: str  # "train.py:41 in forward"; "" where none is known
    line: int
    excerpt: tuple[tuple[int, str], ...]
    numbers: tuple[tuple[str, str], ...]
    also: tuple[str, ...]
    consequences: tuple[str, ...]


def cards(run: RunView) -> list[Card]:
    """Return the findings as cards, the one to act on first."""
    known = parameter_names(run.evidence)
    return [_card(finding, known) for finding in run.findings]


def _card(finding: Finding, known: frozenset[str]) -> Card:
    place = finding.place
    excerpt = place.excerpt or ((place.line, place.code),) if place is not None else ()
    simple = ((key.replace("_", " "), value) for key, value in finding.evidence.items())
    return Card(
        rule=finding.rule,
        severity=finding.severity.value,
        message=finding.message,
        fix=finding.fix,
        tensors=tuple((each.pattern, each.count) for each in group(finding.tensors, known)),
        place="" if place is None else where(place),
        line=0 if place is None else place.line,
        excerpt=excerpt,
        numbers=tuple((key, number(value)) for key, value in simple if isinstance(value, int | float | str)),
        also=tuple(where(each) for each in finding.also),
        consequences=tuple(f"{each.rule}: {each.message}" for each in finding.consequences),
    )


def rule_pages(run: RunView) -> dict[str, str]:
    """Return slug -> page as HTML, of every rule that found something."""
    slugs = {each.rule for finding in run.findings for each in (finding, *finding.consequences)}
    return {slug: rule_page(slug) for slug in sorted(slugs)}


def facts(run: RunView) -> list[tuple[str, str]]:
    """Return what was run and what watching it cost, as label and value."""
    info = run.evidence.info
    share = f" ({info.own_s / info.duration_s:.1%})" if info.duration_s > 0 else ""
    return [
        ("program", " ".join((info.script, *info.argv))),
        ("steps", f"{info.steps}, {info.recorded_steps} of them recorded, {info.traced_steps} traced"),
        ("backward passes", str(info.backwards)),
        ("time", f"{info.duration_s:.1f} s, of which whygrad took {info.own_s:.1f} s{share}"),
        ("ranks", str(len(run.ranks))),
        ("torch, Python, whygrad", f"{info.torch}, {info.python}, {info.whygrad}"),
        ("started", info.started_utc),
    ]


def data(run: RunView, track: Track = iter) -> dict[str, Any]:
    """Return the values that the page's script draws, JSON only."""
    evidence = run.evidence
    parameters = evidence.parameters_in_order
    ids = [parameter.id for parameter in parameters]
    outputs = sorted(evidence.outputs, key=lambda output: (output.order, output.id))[:MAX_OUTPUTS]
    output_ids = [output.id for output in outputs]
    return {
        "headline": headline(run),
        "parameters": [_parameter(p, evidence) for p in parameters],
        "outputs": [_output(o) for o in outputs],
        "gradient": _drawn(grid(evidence, Role.GRADIENT, ids, _SIZES, track)),
        "weight": _drawn(grid(evidence, Role.WEIGHT, ids, {"rms": lambda s: s.rms}, track)),
        "update": _drawn(update_ratios(evidence, ids, track)),
        "histogram": _drawn(histograms(evidence, ids, track)),
        "output": _drawn(grid(evidence, Role.OUTPUT, output_ids, _OUTPUT_SIZES, track)),
        "output_gradient": _drawn(grid(evidence, Role.OUTPUT_GRADIENT, output_ids, _OUTPUT_SIZES, track)),
        "loop": _loop(evidence),
        "is_thinned": evidence.lacks_statistics,
        "events": [asdict(moment) for moment in moments(evidence)],
    }


def _drawn(numbers: Grid) -> dict[str, Any]:
    return asdict(numbers)


def _parameter(parameter: Parameter, evidence: Evidence) -> dict[str, Any]:
    total = evidence.total(Role.GRADIENT, parameter.id)
    return {
        "name": parameter.name,
        "shape": list(parameter.shape),
        "dtype": parameter.dtype,
        "state": state(parameter),
        "cuts": [_cut(cut) for cut in evidence.cuts_of(parameter)][:4],
        "steps": parameter.steps,
        "gradient_steps": parameter.gradient_steps,
        "mean_abs": _finite(total.statistics.mean_abs) if total is not None else None,
        "made_at": "" if parameter.made_at is None else where(parameter.made_at),
    }


def _cut(cut: Cut) -> str:
    at = f" at {where(cut.place)}" if cut.place is not None else ""
    return f"{cut.operation} ({cut.kind.value}){at}"


def _output(output: Output) -> dict[str, Any]:
    return {
        "name": output.name,
        "shape": list(output.shape),
        "dtype": output.dtype,
        "calls": output.calls,
        "gradient_calls": output.gradient_calls,
    }


def _loop(evidence: Evidence) -> dict[str, Any]:
    """Return loss and learning rate over the steps: all where they are few, else evenly spread ones."""
    ids = [step.id for step in evidence.steps]
    chosen = set(thinned(ids, 1, 2000, at=ids))
    steps = [step for step in evidence.steps if step.id in chosen]
    return {
        "steps": [step.id for step in steps],
        "loss": [None if step.loss is None else _finite(step.loss) for step in steps],
        "learning_rate": [_finite(max(step.learning_rates, default=math.nan)) for step in steps],
        "nonfinite": [step.id for step in evidence.steps if step.loss is not None and not math.isfinite(step.loss)],
    }


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def thinning(values: dict[str, Any]) -> str:
    """Return a sentence on the recorded steps that are left out; "" where none is."""
    numbers = values["gradient"]
    fewer = "Of the older steps of this long run, the run file keeps fewer." if values["is_thinned"] else ""
    if len(numbers["steps"]) >= numbers["recorded"]:
        return fewer
    shown = f"{len(numbers['steps'])} of {numbers['recorded']} recorded steps are shown, evenly spread"
    return f"{shown}. {fewer}" if fewer else f"{shown}; the run file has them all."


@dataclass(frozen=True, slots=True)
class Branch:
    """A module as a line of the tree."""

    depth: int
    name: str
    type: str
    made_at: str
    parameters: tuple[tuple[str, str], ...]  # attribute, state


def tree(evidence: Evidence) -> list[Branch]:
    """Return the modules, each under the one that contains it, with the state of their parameters."""
    held: dict[tuple[str, str], list[Parameter]] = {}
    for parameter in evidence.parameters:
        held.setdefault((parameter.root, parameter.module), []).append(parameter)
    branches = []
    for module in sorted(evidence.modules, key=lambda m: (m.root, m.name.split("."), m.id)):
        own = held.pop((module.root, module.name), [])
        made = "" if module.made_at is None else where(module.made_at)
        depth = len(module.name.split(".")) if module.name else 0
        branches.append(Branch(depth, module.name or module.root, module.type, made, _states(own)))
    for (root, name), rest in held.items():
        branches.append(Branch(1, name or root or "(no module)", rest[0].module_type, "", _states(rest)))
    return branches


def _states(parameters: Iterable[Parameter]) -> tuple[tuple[str, str], ...]:
    return tuple((parameter.attribute or parameter.name, state(parameter)) for parameter in parameters)
