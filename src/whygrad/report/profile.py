"""A quantity over the depth of a model as a picture of bars, on a log scale.

          relu                           sigmoid                        ratio
0.weight  ################      1.6e-02  ##                    1.3e-04   124x
2.weight  #################     2.1e-02  ##########            1.9e-03  11.1x
4.weight  ##################    4.0e-02  ##################    3.1e-02  1.29x
          1e-04         1e-01            1e-04         1e-01
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from whygrad.report.writing import clipped, paint, printable, scientific

_MAX_ROWS = 40
_NAME_WIDTHS = (12, 28)  # longer names are clipped in the middle, to a third of the width within these bounds
_LEAST_BAR = 4
_NUMBER_WIDTH = 9  # a space and "1.2e-03"
_REMARK_WIDTH = 9  # two spaces and "1.2e+03x" at most
_EIGHTHS = " \u258f\u258e\u258d\u258c\u258b\u258a\u2589"  # a block of 0 to 7 eighths from the left
_FULL = "\u2588"
_STYLES = ("first", "second")


@dataclass(frozen=True, slots=True)
class Layer:
    """One row: a name, a value per series (None: not recorded), and a word at the end of the line."""

    name: str
    values: tuple[float | None, ...]
    remark: str = ""


def picture(layers: Sequence[Layer], series: Sequence[str], *, width: int, color: bool, remark: str = "") -> list[str]:
    """Return the lines of the picture, the first layer on top.

    Args:
        layers: The rows; of more than 40, evenly spread ones are shown, and a last line says so.
        series: The heading of each value.
        width: Columns to keep to, where names and numbers leave room for the shortest bars.
        color: Colours, and blocks in eighths of a column; else "#".
        remark: The heading of the remarks.
    """
    shown = _spread(layers)
    name_width = min(max((len(printable(layer.name)) for layer in shown), default=0), _most_of_name(width))
    room = width - name_width - (_REMARK_WIDTH if any(layer.remark for layer in shown) else 0)
    bar_width = max(_LEAST_BAR, room // max(1, len(series)) - 2 - _NUMBER_WIDTH)
    scale = _scale(value for layer in shown for value in layer.values)
    cell_width = bar_width + _NUMBER_WIDTH
    heads = (clipped(printable(name), cell_width).ljust(cell_width) for name in series)
    ends = (_axis(scale, bar_width).ljust(cell_width) for _ in series)
    lines = ["  ".join([" " * name_width, *heads, remark]).rstrip()]
    lines += (_line(layer, name_width, bar_width, scale, color=color) for layer in shown)
    lines.append(paint("  ".join([" " * name_width, *ends]).rstrip(), "faint", color=color))
    if len(shown) < len(layers):
        lines.append(f"({len(shown)} of {len(layers)} rows shown)")
    return lines


def _most_of_name(width: int) -> int:
    least, most = _NAME_WIDTHS
    return min(most, max(least, width // 3))


def _spread(layers: Sequence[Layer]) -> Sequence[Layer]:
    if len(layers) <= _MAX_ROWS:
        return layers
    return [layers[round(i * (len(layers) - 1) / (_MAX_ROWS - 1))] for i in range(_MAX_ROWS)]


def _scale(values: Iterable[float | None]) -> tuple[int, int]:
    """Return the powers of ten around the positive, finite values."""
    sizes = [math.log10(value) for value in values if value is not None and 0 < value < math.inf]
    if not sizes:
        return (-1, 0)
    lowest = math.floor(min(sizes))
    return (lowest, max(lowest + 1, math.ceil(max(sizes))))


def _axis(scale: tuple[int, int], bar_width: int) -> str:
    low, high = (f"1e{exponent:+03d}" for exponent in scale)
    return low + high.rjust(bar_width - len(low)) if bar_width > len(low) + len(high) else low


def _line(layer: Layer, name_width: int, bar_width: int, scale: tuple[int, int], *, color: bool) -> str:
    name = clipped(printable(layer.name), name_width).ljust(name_width)
    cells = [
        _cell(value, bar_width, scale, _STYLES[i % len(_STYLES)], color=color) for i, value in enumerate(layer.values)
    ]
    return "  ".join([name, *cells, layer.remark]).rstrip()


def _cell(value: float | None, bar_width: int, scale: tuple[int, int], style: str, *, color: bool) -> str:
    bar = _bar(value, bar_width, scale, blocks=color)
    return f"{paint(bar, style, color=color)}{' ' * (bar_width - len(bar))}{scientific(value):>{_NUMBER_WIDTH}}"


def _bar(value: float | None, bar_width: int, scale: tuple[int, int], *, blocks: bool) -> str:
    """Return a bar of at least one mark for any positive value; none for zero, NaN and what was not recorded."""
    if value is None or not value > 0:
        return ""
    low, high = scale
    share = 1.0 if math.isinf(value) else (math.log10(value) - low) / (high - low)
    if not blocks:
        return "#" * max(1, round(share * bar_width))
    eighths = max(1, round(share * bar_width * 8))
    return _FULL * (eighths // 8) + _EIGHTHS[eighths % 8].strip()
