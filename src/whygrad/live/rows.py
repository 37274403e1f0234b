"""What the live view shows of a run: one row a parameter, the worst on top.

state        |g|   update/w  gradient over the steps   name
no gradient  -     -                                   head.weight
learns       3e-05 1e-06     ########===---            encoder.0.weight
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from whygrad.evidence import Evidence
from whygrad.model import Parameter, Role, Statistics
from whygrad.report.states import state
from whygrad.spread import spread

SPARK_STEPS = 24
_BLOCKS = "\u2581\u2582\u2583\u2584\u2585\u2586\u2587\u2588"
_HOLE = "\u00b7"  # not recorded, or no gradient
_ZERO = "0"
_BROKEN = "!"  # NaN or Inf


class Order(StrEnum):
    """How the rows are sorted."""

    WORST = "worst first"
    FORWARD = "forward order"
    NAME = "name"


@dataclass(frozen=True, slots=True)
class Row:
    """One parameter."""

    name: str
    state: str
    size: float | None  # RMS of its gradient at the last recorded step; None: it had none
    ratio: float | None  # RMS of its last update over that of its weight
    spark: str  # one character a step
    order: int  # forward order


def rows(evidence: Evidence) -> tuple[Row, ...]:
    """Return the parameters in forward order."""
    steps = evidence.sample(Role.GRADIENT, SPARK_STEPS)
    gradients = [evidence.matrices.read(step, Role.GRADIENT) for step in steps]
    sizes = [s.rms for found in gradients for s in found.values() if s.finite and s.rms > 0]
    scale = (math.log10(min(sizes)), math.log10(max(sizes))) if sizes else (-8.0, 0.0)
    updates = _last(evidence, Role.UPDATE)
    weights = _last(evidence, Role.WEIGHT)
    return tuple(
        Row(
            name=parameter.name,
            state=state(parameter),
            size=_size(gradients[-1].get(parameter.id)) if gradients else None,
            ratio=_ratio(updates.get(parameter.id), weights.get(parameter.id)),
            spark="".join(_mark(found.get(parameter.id), scale) for found in gradients),
            order=position,
        )
        for position, parameter in enumerate(evidence.parameters_in_order)
    )


def _last(evidence: Evidence, role: Role) -> dict[int, Statistics]:
    steps = evidence.matrices.steps(role)
    return dict(evidence.matrices.read(steps[-1], role)) if steps else {}


def _size(statistics: Statistics | None) -> float | None:
    if statistics is None:
        return None
    return math.nan if statistics.nonfinite else statistics.rms


def _ratio(update: Statistics | None, weight: Statistics | None) -> float | None:
    return update.rms / weight.rms if update is not None and weight is not None and weight.rms > 0 else None


def _mark(statistics: Statistics | None, scale: tuple[float, float]) -> str:
    if statistics is None:
        return _HOLE
    if statistics.nonfinite:
        return _BROKEN
    if statistics.rms == 0:
        return _ZERO
    low, high = scale
    share = (math.log10(statistics.rms) - low) / (high - low) if high > low else 1.0
    return _BLOCKS[min(len(_BLOCKS) - 1, max(0, round(share * (len(_BLOCKS) - 1))))]


def arranged(given: Sequence[Row], order: Order, wanted: str = "") -> list[Row]:
    """Return the rows whose name holds `wanted`, sorted."""
    kept = [row for row in given if wanted.lower() in row.name.lower()]
    if order is Order.NAME:
        return sorted(kept, key=lambda row: row.name)
    return sorted(kept, key=_badness) if order is Order.WORST else kept


def _badness(row: Row) -> tuple[int, float, int]:
    if row.state in ("frozen", "unused"):
        return (3, 0.0, row.order)
    if row.size is None or math.isnan(row.size):
        return (0, 0.0 if row.size is None else -1.0, row.order)
    return (2 if row.state == "learns" else 1, row.size, row.order)


def loss_line(evidence: Evidence, width: int) -> str:
    """Return the loss over the steps as blocks, and its last value."""
    known = [(step.id, step.loss) for step in evidence.steps if step.loss is not None]
    if not known:
        return "no loss yet"
    losses = [loss for _, loss in known]
    shown = [losses[i] for i in spread([step for step, _ in known], max(8, width))]
    finite = [value for value in shown if math.isfinite(value)]
    low, high = (min(finite), max(finite)) if finite else (0.0, 1.0)
    return "".join(_height(value, low, high) for value in shown) + f"  loss {losses[-1]:.4g}"


def _height(value: float, low: float, high: float) -> str:
    if not math.isfinite(value):
        return _BROKEN
    return _BLOCKS[round((value - low) / (high - low) * (len(_BLOCKS) - 1))] if high > low else _BLOCKS[0]


def of(evidence: Evidence, name: str) -> Parameter | None:
    """Return the parameter of that name."""
    return next((parameter for parameter in evidence.parameters if parameter.name == name), None)
