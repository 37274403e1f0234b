"""the sigmoid `D.5` passes on 1.2% of its steepest slope in the second half of the run: `G.0.weight` (+5) stand still.

## What it looks for

A sigmoid, tanh or softmax whose inputs are so large that it is flat there, while the loss stands still.

## Why it does not learn

Backward multiplies by the slope of the function at the value that went through. Where the function is flat that is next
to nothing, whatever comes from behind, and large inputs stay large because nothing pulls them back. It happens behind
weights or inputs that are too large, behind scores that are not scaled (dot products of long vectors, a temperature
that is too low), and at an output that meets a loss which does not undo the squashing: cross-entropy does (its gradient
with respect to the logit is the error itself), a squared error does not.

## What it measures

In recorded steps, for every sigmoid, tanh and softmax at the end of a module, or applied to what a module returned: the
mean slope at its values, against the steepest one. That a function is flat is no fault by itself: the gates of a
trained LSTM, the attention of a trained transformer and the probabilities of a solved task are flat too. Therefore the
loss of the steps must stand still as well (in the last quarter at least 0.9 of what it was in the first), over at least
ten recorded steps (four, of an optimizer that takes turns with others), and one of these must hold for the later half:

- the slope was below 0.05 from the first looks on, and parameters lie before it: it started that way;
- the slope is below 0.1, it is the last thing that a model computes, and the gradient in front of it, times the value
  there (both as L2 norms), is below 0.2 of the loss: moving the values by their own size would not change the loss.
  With cross-entropy, or where the task is solved, that is about the value itself, 5 to 10.

A tanh or sigmoid of which the slope is below 0.005 at every look is reported whether the loss stands still or not: what
lies before it does not learn, even if the layers behind it do.

In 47 programs that train the median slope in the later half of the run was at least 0.18 (the output of an autoencoder
for images that are mostly black), and at least 0.42 for all others; at the start it was at least 0.69. The case that
this rule was built on, a squared error behind the sigmoid of a discriminator, lies at 0.014.

## Example

```python bad
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 1), nn.Sigmoid())  # saturated-activation
nn.init.constant_(model[2].bias, 10.0)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(40):
    x = torch.randn(64, 8)
    loss = (model(x).squeeze(1) - (x[:, 0] > 0).float()).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
```

## Fix

Bring what enters the function to about -2 to 2: scale the data and the weights, divide scores by the root of their
length; give a squared or a Wasserstein loss the raw score.

```python good
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 1), nn.Sigmoid())
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(40):
    x = torch.randn(64, 8)
    loss = (model(x).squeeze(1) - (x[:, 0] > 0).float()).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
```

## When it is fine

Behind a straight-through estimator the slope does not matter.

## See also

[unscaled-data](unscaled-data.md), [vanishing-gradient](vanishing-gradient.md).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from whygrad.evidence import Evidence
from whygrad.model import Activation, Finding, Optimizer, Output, Parameter, Role, Severity
from whygrad.rules._base import rule
from whygrad.rules._select import names
from whygrad.rules._sizes import is_taught, median
from whygrad.rules._stillness import is_level
from whygrad.rules._text import named, number

_SLUG = "saturated-activation"
_MIN_LOOKS = 10
_FEWEST_LOOKS = 4  # of a program that steps one optimizer more often than another
_FLAT = 0.05  # of the steepest slope
_NEARLY_FLAT = 0.1
_FIRST_LOOKS = 3
_IDLE = 0.2  # of the loss
_SHUT = 5e-3  # of the steepest slope, at every look
_SQUASHING = ("tanh", "sigmoid")


@dataclass(frozen=True, slots=True)
class _Series:
    """One activation in the steps of one optimizer."""

    activation: Activation
    output: Output
    steps: tuple[int, ...]
    slopes: tuple[float, ...]

    @property
    def late(self) -> float:
        """Return the median slope in the later half of the looks."""
        return median(self.slopes[len(self.slopes) // 2 :])

    @property
    def starts_flat(self) -> bool:
        """Return whether it was saturated from the first looks on."""
        return max(self.slopes[:_FIRST_LOOKS]) < _FLAT

    @property
    def is_shut(self) -> bool:
        """Return whether nothing ever came through: what lies before does not learn, even if the rest does."""
        return self.activation.function in _SQUASHING and max(self.slopes) < _SHUT


@rule(
    _SLUG,
    title="A squashing function is flat where its values are",
    severity=Severity.WARNING,
    since="0.1.0",
    explains=("vanishing-gradient", "zero-gradient", "update-too-small", "constant-loss", "decay-dominates"),
)
def check(evidence: Evidence) -> Iterator[Finding]:
    """Yield one finding for each activation that keeps an optimizer's parameters from learning."""
    outputs = {output.id: output for output in evidence.outputs}
    for optimizer in evidence.optimizers:
        losses = {s.id: abs(s.loss) for s in evidence.steps if s.optimizer == optimizer.id and s.loss is not None}
        even = evidence.evenly(step for step in evidence.steps if step.id in losses)
        is_still = is_level([losses[step.id] for step in even])
        for activation in evidence.activations:
            series = _series(activation, outputs.get(activation.output), losses)
            if series is None or not (is_still or series.is_shut):
                continue
            stopped = _stopped(evidence, optimizer, series, losses)
            if stopped:
                yield _finding(series, stopped, is_still=is_still)
                break


def _series(activation: Activation, output: Output | None, losses: dict[int, float]) -> _Series | None:
    both = [(s, slope) for s, slope in zip(activation.steps, activation.slopes, strict=True) if s in losses]
    fewest = _MIN_LOOKS if len(both) == len(activation.steps) else _FEWEST_LOOKS
    if output is None or len(both) < fewest:
        return None
    series = _Series(activation, output, tuple(s for s, _ in both), tuple(slope for _, slope in both))
    return series if series.late < _NEARLY_FLAT else None


def _stopped(evidence: Evidence, optimizer: Optimizer, series: _Series, losses: dict[int, float]) -> list[Parameter]:
    """Return the parameters of an optimizer that get next to nothing because of an activation."""
    held = [p for p in evidence.parameters_in_order if optimizer.id in p.optimizers and is_taught(evidence, p)]
    module = evidence.module_by_id.get(series.output.module)
    order = None if module is None else module.order
    root = "" if module is None else module.root
    before = [p for p in held if p.root != root or p.order is None or order is None or p.order <= order]
    if series.starts_flat and series.late < _FLAT:
        return before
    return before if _is_last(evidence, series.output, root) and _is_idle(evidence, series, losses) else []


def _is_last(evidence: Evidence, output: Output, root: str) -> bool:
    known = evidence.module_by_id
    own = [o.order for o in evidence.outputs if o.module in known and known[o.module].root == root]
    return output.order == max(own)


def _is_idle(evidence: Evidence, series: _Series, losses: dict[int, float]) -> bool:
    """Return whether moving what enters the function by its own size would not change the loss."""
    before = _feeder(evidence, series)
    ratios: list[float] = []
    for step in series.steps[len(series.steps) // 2 :]:
        gradient = evidence.matrices.read(step, Role.OUTPUT_GRADIENT).get(before.id)
        value = evidence.matrices.read(step, Role.OUTPUT).get(before.id)
        if gradient is not None and value is not None and losses[step] > 0:
            ratios.append(gradient.l2 * value.l2 / losses[step])
    return bool(ratios) and median(ratios) < _IDLE


def _feeder(evidence: Evidence, series: _Series) -> Output:
    """Return the output that enters the function: the one before, or where a function was called, its own module's."""
    earlier = [o for o in evidence.outputs if o.order < series.output.order and o.gradient_calls]
    return max(earlier, key=lambda output: output.order, default=series.output)


def _finding(series: _Series, stopped: Sequence[Parameter], *, is_still: bool) -> Finding:
    since = "from the start" if series.starts_flat else "in the second half of the run"
    flat = median(series.activation.flat[len(series.activation.flat) // 2 :])
    return Finding(
        rule=_SLUG,
        severity=Severity.WARNING,
        tensors=names(stopped),
        place=series.activation.place,
        message=f"the {series.activation.function} `{series.output.name}` passes on {number(100 * series.late)}% of "
        f"its steepest slope {since}{', and the loss stands still' if is_still else ''}: {named(names(stopped))} get "
        "next to no gradient",
        fix="Scale what enters it to about -2 to 2 (data, weights, or scores), or give the loss the raw score",
        evidence={
            "slope": series.late,
            "first_slope": series.slopes[0],
            "flat_share": flat,
            "looks": len(series.steps),
        },
    )
