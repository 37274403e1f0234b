"""Two runs side by side over the depth of the model.

mean |gradient| per parameter, nearest the input first, over 10 and 10 recorded steps
          relu                           sigmoid                        ratio
0.weight  ################      1.6e-02  ##                    1.3e-04   124x
2.weight  #################     2.1e-02  ##########            1.9e-03  11.1x
4.weight  ##################    4.0e-02  ##################    3.1e-02  1.29x
          1e-04         1e-01            1e-04         1e-01

With sigmoid, `0.weight` (nearest the input) gets 124 times less gradient than with relu.
From `4.weight` down to `0.weight`, the gradient shrinks 2.5 times with relu and shrinks 240 times with sigmoid.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from os import PathLike
from pathlib import PurePath

from whygrad.evidence import Evidence
from whygrad.model import Finding, Parameter, Role, RunInfo
from whygrad.report.alignment import Alignment, align
from whygrad.report.opening import open_run
from whygrad.report.profile import Layer, picture
from whygrad.report.verdict import judge
from whygrad.report.view import RunView
from whygrad.report.writing import paint, times, wrapped
from whygrad.rules import all_rules

_ALIKE = 1.5  # below this ratio two gradients are called alike: it is within what another seed does


@dataclass(frozen=True, slots=True)
class Gradient:
    """The size of one parameter's gradient in one run, over its recorded steps."""

    name: str
    steps: int
    mean_abs: float  # mean |gradient| of the finite elements; NaN where nothing was recorded
    l2: float  # norm of one step: the quadratic mean over the recorded steps


@dataclass(frozen=True, slots=True)
class ComparedParameter:
    """One parameter in both runs."""

    shape: tuple[int, ...]
    a: Gradient
    b: Gradient

    @property
    def ratio(self) -> float:
        """Return how many times more mean |gradient| run a has: inf where only b has none, NaN if unknown."""
        if self.b.mean_abs == 0:
            return math.inf if self.a.mean_abs > 0 else math.nan
        return self.a.mean_abs / self.b.mean_abs


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two runs, parameter by parameter and finding by finding."""

    labels: tuple[str, str]
    parameters: tuple[ComparedParameter, ...]  # in forward order: nearest the input first
    alignment: Alignment
    new: tuple[Finding, ...]  # found in b only
    gone: tuple[Finding, ...]  # found in a only
    same: tuple[Finding, ...]  # found in both, as b has them

    @property
    def steps(self) -> tuple[int, int]:
        """Return the recorded steps that the gradients are taken over, per run."""
        pairs = [(p.a.steps, p.b.steps) for p in self.parameters]
        return (max((a for a, _ in pairs), default=0), max((b for _, b in pairs), default=0))

    @property
    def layers(self) -> tuple[ComparedParameter, ...]:
        """Return the parameters of two and more dimensions, one per layer as a rule; where there are none, all."""
        return tuple(p for p in self.parameters if len(p.shape) >= 2) or self.parameters

    @property
    def sentences(self) -> tuple[str, ...]:
        """Return what the picture shows, in words."""
        layers = [layer for layer in self.layers if layer.a.steps and layer.b.steps]
        if not layers:
            return ("No parameter has a recorded gradient in both runs.",)
        return (_first_layer(layers[0], self.labels), *_over_depth(layers[0], layers[-1], self.labels))

    def __str__(self) -> str:
        return self.render()

    def render(self, color: bool = False, width: int = 80) -> str:
        """Return the picture, the sentences and the findings as text, ending with a newline."""
        a, b = self.steps
        title = f"mean |gradient| per parameter, nearest the input first, over {a} and {b} recorded steps"
        lines = [paint(line, "strong", color=color) for line in wrapped(title, width)]
        rows = [_row(layer) for layer in self.layers]
        lines += [*picture(rows, self.labels, width=width, color=color, remark=f"{'ratio':>7}"), ""]
        lines += (line for sentence in self.sentences for line in wrapped(sentence, width))
        lines += ["", *wrapped(f"{self.alignment.sentence}.", width)]
        lines += _findings(self, color=color, width=width)
        return "\n".join(lines) + "\n"


def compare(
    a: RunView | str | PathLike[str],
    b: RunView | str | PathLike[str],
    labels: tuple[str, str] | None = None,
) -> Comparison:
    """Compare two runs of a program with something changed between them.

    Parameters are aligned by name, else by order and shape. Gradients are those of all recorded steps together.

    Args:
        a: A run, or the path of a run folder or file.
        b: The run to set against it.
        labels: What to call them; by default the script argument they differ in, or "A" and "B".

    Raises:
        RunFileError: A path is no readable run.
    """
    evidence_a, findings_a = _side(a)
    evidence_b, findings_b = _side(b)
    alignment = align(evidence_a.parameters_in_order, evidence_b.parameters_in_order)
    renamed = {q.name: p.name for p, q in alignment.pairs}
    is_old = [any(_same(old, new, renamed) for old in findings_a) for new in findings_b]
    return Comparison(
        labels=labels or labels_of(evidence_a.info, evidence_b.info),
        parameters=tuple(
            ComparedParameter(p.shape, _gradient(p, evidence_a), _gradient(q, evidence_b)) for p, q in alignment.pairs
        ),
        alignment=alignment,
        new=tuple(f for f, old in zip(findings_b, is_old, strict=True) if not old),
        gone=tuple(f for f in findings_a if not any(_same(f, new, renamed) for new in findings_b)),
        same=tuple(f for f, old in zip(findings_b, is_old, strict=True) if old),
    )


def _side(run: RunView | str | PathLike[str]) -> tuple[Evidence, tuple[Finding, ...]]:
    if isinstance(run, str | PathLike):
        ranks = open_run(run).ranks
        return ranks[0], judge(ranks, all_rules()).findings
    return run.evidence, run.findings


def _gradient(parameter: Parameter, evidence: Evidence) -> Gradient:
    total = evidence.total(Role.GRADIENT, parameter.id)
    if total is None or not total.steps:
        return Gradient(parameter.name, 0, math.nan, math.nan)
    l2 = math.sqrt(total.statistics.sum_squares / total.steps)
    return Gradient(parameter.name, total.steps, total.statistics.mean_abs, l2)


def _same(old: Finding, new: Finding, renamed: dict[str, str]) -> bool:
    if old.rule != new.rule:
        return False
    tensors = {renamed.get(name, name) for name in new.tensors}
    return not tensors.isdisjoint(old.tensors) or not (tensors or old.tensors)


def labels_of(a: RunInfo, b: RunInfo) -> tuple[str, str]:
    """Return the one script argument, else the script, that the runs differ in; "A" and "B" where neither is so."""
    if len(a.argv) == len(b.argv):
        differing = [pair for pair in zip(a.argv, b.argv, strict=True) if pair[0] != pair[1]]
        if len(differing) == 1:
            return _values(*differing[0])
    scripts = (PurePath(a.script).name, PurePath(b.script).name)
    return scripts if scripts[0] != scripts[1] else ("A", "B")


def _values(a: str, b: str) -> tuple[str, str]:
    """Return `relu` and `tanh` for `--activation=relu` and `--activation=tanh`."""
    (option_a, _, value_a), (option_b, _, value_b) = a.partition("="), b.partition("=")
    return (value_a, value_b) if option_a == option_b and value_a and value_b else (a, b)


def _row(layer: ComparedParameter) -> Layer:
    values = tuple(g.mean_abs if g.steps else None for g in (layer.a, layer.b))
    ratio = layer.ratio
    remark = f"{ratio:.3g}x" if 0 < ratio < math.inf else ""
    name = layer.a.name if layer.a.name == layer.b.name else f"{layer.a.name} = {layer.b.name}"
    return Layer(name, values, f"{remark:>7}" if remark else "")


def _first_layer(layer: ComparedParameter, labels: tuple[str, str]) -> str:
    name = f"`{layer.a.name}` (nearest the input)"
    if layer.a.mean_abs == 0 == layer.b.mean_abs:
        return f"{name} gets no gradient at all in either run."
    if math.isnan(layer.ratio):
        return f"{name} has no finite gradient in one of the runs."
    (more, less), ratio = (labels, layer.ratio) if layer.ratio >= 1 else (labels[::-1], _inverse(layer.ratio))
    if math.isinf(ratio):
        return f"With {less}, {name} gets no gradient at all; with {more} it gets some."
    if ratio < _ALIKE:
        return f"{name} gets about as much gradient with {labels[0]} as with {labels[1]}."
    return f"With {less}, {name} gets {times(ratio)} times less gradient than with {more}."


def _inverse(ratio: float) -> float:
    return 1 / ratio if ratio else math.inf


def _over_depth(first: ComparedParameter, last: ComparedParameter, labels: tuple[str, str]) -> Iterator[str]:
    """Yield how the gradient changes on its way from the output to the input, where that is known for both runs."""
    changes = [_change(last.a.mean_abs, first.a.mean_abs), _change(last.b.mean_abs, first.b.mean_abs)]
    if first is not last and all(changes):
        said = " and ".join(f"{change} with {label}" for change, label in zip(changes, labels, strict=True))
        yield f"From `{last.a.name}` down to `{first.a.name}`, the gradient {said}."


def _change(start: float, end: float) -> str:
    if not (start > 0 and end > 0 and math.isfinite(start) and math.isfinite(end)):
        return ""
    ratio = max(start / end, end / start)
    if ratio < _ALIKE:
        return "stays about as large"
    return f"{'shrinks' if start > end else 'grows'} {times(ratio)} times"


def _findings(comparison: Comparison, *, color: bool, width: int) -> Iterator[str]:
    a, b = comparison.labels
    groups = (
        (f"only with {b}", comparison.new),
        (f"only with {a}", comparison.gone),
        ("with both", comparison.same),
    )
    for title, found in groups:
        if found:
            yield from ("", f"{title}:")
        for finding in found:
            lead = f"  {finding.severity} "
            first, *rest = wrapped(f"{finding.rule}: {finding.message}", width, first=lead, rest="    ")
            yield f"  {paint(finding.severity.value, finding.severity.value, color=color)} {first.removeprefix(lead)}"
            yield from rest
