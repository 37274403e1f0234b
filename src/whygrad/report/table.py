"""Statistics per tensor: of every parameter's gradient and of the gradient of every module output.

gradient of parameters, 10 recorded steps
name            mean      std  mean|g|       L2   max|g|  zeros  nan+inf
0.weight     1.2e-04  3.4e-03  2.1e-03  1.9e-02  1.1e-02     0%        0
0.bias      -3.0e-05  2.2e-03  1.8e-03  6.3e-03  4.0e-03    12%        0
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from whygrad.evidence import Evidence
from whygrad.model import Role, Total
from whygrad.report.view import RunView
from whygrad.report.writing import clipped, paint, plural, printable, scientific

COLUMNS = ("name", "kind", "steps", "mean", "std", "mean_abs", "l2", "max_abs", "zero_share", "nans", "infs")


@dataclass(frozen=True, slots=True)
class Row:
    """The statistics of one tensor's gradient over the recorded steps; its fields are the columns.

    `l2` is the norm of one step: the quadratic mean over the recorded steps. `nans` and `infs` count over all of them.
    Where nothing was recorded, `steps` is 0 and the statistics are NaN.
    """

    name: str
    kind: str  # "parameter" or "output"
    steps: int
    mean: float
    std: float
    mean_abs: float
    l2: float
    max_abs: float
    zero_share: float
    nans: int
    infs: int


def rows(evidence: Evidence) -> tuple[Row, ...]:
    """Return a row per parameter, then a row per module output, each in forward order."""
    outputs = sorted(evidence.outputs, key=lambda output: (output.order, output.id))
    return (
        *(_row(p.name, "parameter", evidence.total(Role.GRADIENT, p.id)) for p in evidence.parameters_in_order),
        *(_row(o.name, "output", evidence.total(Role.OUTPUT_GRADIENT, o.id)) for o in outputs),
    )


def columns(evidence: Evidence) -> dict[str, list[str] | list[int] | list[float]]:
    """Return the rows as one list per column, the form that data frame libraries take."""
    table = rows(evidence)
    return {column: [getattr(row, column) for row in table] for column in COLUMNS}


def _row(name: str, kind: str, total: Total | None) -> Row:
    if total is None or total.steps == 0:
        return Row(name, kind, 0, *(math.nan,) * 6, nans=0, infs=0)
    s = total.statistics
    l2, largest = (math.sqrt(s.sum_squares / total.steps), s.max_abs) if s.finite else (math.nan, math.nan)
    return Row(name, kind, total.steps, s.mean, s.std, s.mean_abs, l2, largest, s.zero_share, int(s.nans), int(s.infs))


def statistics_table(run: RunView, width: int = 80, color: bool = False, *, outputs: bool = True) -> str:
    """Return the statistics as text, ending with a newline; names are clipped to keep to the width (from 72 on)."""
    table = rows(run.evidence)
    parameters = [row for row in table if row.kind == "parameter"]
    returned = [row for row in table if row.kind == "output" and row.steps]
    lines = [*_section("gradient of parameters", parameters, width, color=color)]
    if outputs and returned:
        lines += ["", *_section("gradient of module outputs", returned, width, color=color)]
    return "\n".join(lines) + "\n"


_NUMBERS = ("mean", "std", "mean|g|", "L2", "max|g|")
_NUMBERS_WIDTH = 9 * len(_NUMBERS) + 7 + 9


def _section(title: str, table: Sequence[Row], width: int, *, color: bool) -> Iterator[str]:
    steps = max((row.steps for row in table), default=0)
    yield paint(f"{title}, {plural(steps, 'recorded step')}", "strong", color=color)
    if not table:
        return
    name_width = min(max(len(printable(row.name)) for row in table), max(12, width - _NUMBERS_WIDTH))
    yield f"{'name':<{name_width}}" + "".join(f"{n:>9}" for n in _NUMBERS) + f"{'zeros':>7}{'nan+inf':>9}"
    yield from (_line(row, name_width, color=color) for row in table)


def _line(row: Row, name_width: int, *, color: bool) -> str:
    name = f"{clipped(printable(row.name), name_width):<{name_width}}"
    if not row.steps:
        return paint(f"{name}  no gradient recorded", "warning", color=color)
    values = "".join(f"{_cell(v):>9}" for v in (row.mean, row.std, row.mean_abs, row.l2, row.max_abs))
    line = f"{name}{values}{row.zero_share:>7.0%}{row.nans + row.infs:>9}"
    return paint(line, "error", color=color) if row.nans + row.infs else line


def _cell(value: float) -> str:
    return scientific(None if math.isnan(value) else value)
