"""The constant that a loss was multiplied by, and whether a mean stands behind it: read from the top of its graph."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import FrameType
from typing import Any, NamedTuple

import torch

from whygrad.model import LossScale
from whygrad.probe.source import Site, local_names, place_or_none

_DEPTH = 32
_MEAN = 1  # how autograd's nodes of loss functions say reduction="mean"
_KEPT = 256  # lines
_SAME = ("ToCopy", "View", "Reshape", "UnsafeView", "Squeeze", "Unsqueeze", "Clone", "Alias", "Select", "Expand")


class Factor(NamedTuple):
    """What stands between a backward pass and the loss function."""

    constant: float
    mean: bool


_NONE = Factor(1.0, False)


def loss_factor(root: torch.Tensor) -> Factor:
    """Return the constants that a loss was multiplied by or divided by; of a sum, those of its main term."""
    return _factor(root.grad_fn, 1.0, _DEPTH)


def _factor(node: Any, constant: float, depth: int) -> Factor:
    name = type(node).__name__.split("Backward")[0] if node is not None else ""
    children = [child for child, _ in node.next_functions if child is not None] if name else []
    if depth == 0 or not name:
        return Factor(constant, False)
    if name == "Mean" or getattr(node, "_saved_reduction", None) == _MEAN:
        return Factor(constant, True)
    if name in ("Add", "Sub") and children:
        return max((_factor(child, constant, depth - 1) for child in children), key=_importance)
    if len(children) == 1 and name in ("Mul", "Div"):
        other = _constant(node)
        if other:
            return _factor(children[0], constant * other if name == "Mul" else constant / other, depth - 1)
    elif len(children) == 1 and (name in _SAME or (name == "Sum" and not node._saved_self_sym_sizes)):
        return _factor(children[0], constant, depth - 1)
    return Factor(constant, False)


def _importance(term: Factor) -> tuple[bool, bool, float]:
    """Return by what the main term of a sum is told: it is a mean, and weighted by 1 rather than by 10 or 0.01."""
    size = abs(term.constant)
    return term.mean, size <= 1, size if size <= 1 else -size


def _constant(node: Any) -> float | None:
    """Return the number that a product or quotient has on its other side; None if it is no constant at hand."""
    other = node._saved_other
    if isinstance(other, int | float):
        return float(other)
    if not isinstance(other, torch.Tensor) or other.dim() or other.requires_grad or other.is_complex():
        return None
    if other.device.type != "cpu":
        return None
    return float(other)


def framework_division() -> int:
    """Return what Accelerate is dividing the loss by on its way to the backward pass that begins; 0 if it is not."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_name == "backward" and frame.f_code.co_filename.endswith("accelerate/accelerator.py"):
            steps = getattr(local_names(frame).get("self"), "gradient_accumulation_steps", 0)
            return steps if isinstance(steps, int) else 0
        frame = frame.f_back
    return 0


@dataclass(slots=True)
class _Line:
    id: int
    passes: int = 0
    factor: Factor = _NONE
    divided_by: int = 0


@dataclass(slots=True)
class LossScales:
    """The lines of one session that call backward."""

    _lines: dict[Site | None, _Line] = field(default_factory=dict)
    _next: tuple[Factor, int] | None = None

    def look(self, root: torch.Tensor, scale: float | None) -> None:
        """Read the factor of a loss whose backward pass is about to run; `scale` is that of a GradScaler."""
        factor = loss_factor(root)
        self._next = factor._replace(constant=factor.constant / (scale or 1.0)), framework_division()

    def passed(self, site: Site | None) -> None:
        """Count the pass, now that it has run."""
        if self._next is not None and (site in self._lines or len(self._lines) < _KEPT):
            line = self._lines.setdefault(site, _Line(len(self._lines)))
            line.passes += 1
            line.factor, line.divided_by = self._next
        self._next = None

    def facts(self) -> Iterator[LossScale]:
        """Yield what is known of each line."""
        for site, line in self._lines.items():
            constant, mean = line.factor
            yield LossScale(line.id, place_or_none(site), line.passes, constant, mean, line.divided_by)
