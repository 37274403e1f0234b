"""Two runs on one page: depth profiles over each other, the ratio of each layer, findings new, gone and same.

It needs no script: the pictures are SVG.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from whygrad.evidence import Evidence
from whygrad.model import Finding
from whygrad.page.rendering import filled, stylesheet
from whygrad.report.comparison import ComparedParameter, Comparison
from whygrad.report.writing import scientific, times
from whygrad.spread import spread

BAR = 420  # width of the longest bar
LOSS_WIDTH, LOSS_HEIGHT = 640, 180
_POINTS = 400


@dataclass(frozen=True, slots=True)
class Bar:
    """One parameter in both runs, as bars on a common log scale."""

    name: str
    widths: tuple[float, float]
    values: tuple[str, str]
    ratio: str


@dataclass(frozen=True, slots=True)
class Curve:
    """The loss of a run: points of an SVG polyline."""

    label: str
    ends: str  # "1.1 to 0.02"
    points: str


def render_comparison(comparison: Comparison, a: Evidence, b: Evidence) -> str:
    """Return the page."""
    low, high = _scale(comparison.layers)
    return filled(
        "compare.html",
        style=stylesheet(),
        labels=comparison.labels,
        sentences=(*comparison.sentences, f"{comparison.alignment.sentence}."),
        bars=[_bar(layer, comparison.labels, low, high) for layer in comparison.layers],
        scale=(f"1e{low}", f"1e{high}"),
        curves=_curves(comparison.labels, a, b),
        groups=_groups(comparison),
        bar_width=BAR,
        loss_size=(LOSS_WIDTH, LOSS_HEIGHT),
    )


def _scale(layers: Sequence[ComparedParameter]) -> tuple[int, int]:
    sizes = [g.mean_abs for layer in layers for g in (layer.a, layer.b) if 0 < g.mean_abs < math.inf]
    if not sizes:
        return (-1, 0)
    low = math.floor(math.log10(min(sizes)) - 0.1)
    return (low, max(low + 1, math.ceil(math.log10(max(sizes)))))


def _bar(layer: ComparedParameter, labels: tuple[str, str], low: int, high: int) -> Bar:
    values = (layer.a.mean_abs if layer.a.steps else math.nan, layer.b.mean_abs if layer.b.steps else math.nan)
    name = layer.a.name if layer.a.name == layer.b.name else f"{layer.a.name} = {layer.b.name}"
    ratio = layer.ratio if layer.ratio >= 1 else 1 / layer.ratio if layer.ratio > 0 else math.nan
    said = f"{times(ratio)}x less with {labels[layer.ratio >= 1]}" if math.isfinite(ratio) and ratio >= 1.05 else ""
    widths = (_width(values[0], low, high), _width(values[1], low, high))
    return Bar(name, widths, (_number(values[0]), _number(values[1])), said)


def _width(value: float, low: int, high: int) -> float:
    if not 0 < value < math.inf:
        return 0.0
    return round(BAR * (math.log10(value) - low) / (high - low), 1)


def _number(value: float) -> str:
    return "not recorded" if math.isnan(value) else scientific(value)


def _curves(labels: tuple[str, str], a: Evidence, b: Evidence) -> list[Curve]:
    losses = [
        [(step.id, step.loss) for step in evidence.steps if step.loss is not None and math.isfinite(step.loss)]
        for evidence in (a, b)
    ]
    points = [point for loss in losses for point in loss]
    if not points:
        return []
    last = max([1, *(step for step, _ in points)])
    low, high = min(value for _, value in points), max(value for _, value in points)
    span = high - low or 1.0
    return [
        Curve(
            label,
            f"{loss[0][1]:.3g} to {loss[-1][1]:.3g}",
            " ".join(
                f"{step / last * LOSS_WIDTH:.1f},{(high - value) / span * LOSS_HEIGHT:.1f}"
                for step, value in (loss[at] for at in spread([step for step, _ in loss], _POINTS))
            ),
        )
        for label, loss in zip(labels, losses, strict=True)
        if loss
    ]


def _groups(comparison: Comparison) -> list[tuple[str, tuple[Finding, ...]]]:
    a, b = comparison.labels
    named = [(f"only with {b}", comparison.new), (f"only with {a}", comparison.gone), ("with both", comparison.same)]
    return [(title, found) for title, found in named if found]
