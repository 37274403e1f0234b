"""the softmax over [64, 10, 1] runs along a dimension of size 1: it returns 1 whatever `attn.weight` (+1) is.

## What it looks for

A softmax over a single number, and `cross_entropy` with a single class.

## Why it does not learn

Softmax makes its inputs add up to 1. A single one becomes 1, whatever it was: the output is constant, the gradient
exactly zero, and `log_softmax` gives 0. It happens where a classifier of two classes has one output, which wants a
sigmoid, and where attention scores of shape [batch, length, 1] are normalised along the last dimension.

## What it measures

In the traced steps, the size of the dimension along which each softmax ran that a backward pass led back to: 1 in each
of at least three calls. A sequence may start with one element, so the gradient has to be zero at all recorded steps,
five at least, for one of the parameters of the layer in front of it.

## Example

```python bad
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(8):
    probability = torch.softmax(model(torch.randn(16, 4)), dim=1)  # single-logit-softmax
    loss = nn.functional.binary_cross_entropy(probability, torch.rand(16, 1).round())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
```

## Fix

Use a sigmoid for a single output, or normalise along the dimension of what competes.

```python good
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(8):
    logit = model(torch.randn(16, 4))
    loss = nn.functional.binary_cross_entropy_with_logits(logit, torch.rand(16, 1).round())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
```

## When it is fine

A configuration with one head, one expert or one class, in which the softmax has nothing to choose from.

## See also

[softmax-dim](softmax-dim.md): a softmax along another dimension than the one that is used.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from whygrad.evidence import Evidence
from whygrad.model import Finding, LossCall, Parameter, Severity, SoftmaxCall
from whygrad.rules._base import rule
from whygrad.rules._losses import classes_of, gets_zeros, seen_often, shape, trained
from whygrad.rules._select import names
from whygrad.rules._text import named

_SLUG = "single-logit-softmax"


@rule(
    _SLUG,
    title="Softmax over a single number",
    severity=Severity.ERROR,
    since="0.1.0",
    explains=(
        *("zero-gradient", "vanishing-gradient", "constant-loss", "saturated-activation", "update-too-small"),
        *("decay-dominates", "softmax-dim"),
    ),
)
def check(evidence: Evidence) -> Iterator[Finding]:
    """Yield a finding for each such softmax."""
    for softmax in evidence.softmaxes:
        if seen_often(softmax.calls) and softmax.largest == 1:
            yield from _of_softmax(evidence, softmax)
    for loss in evidence.losses:
        if seen_often(loss.calls) and loss.function == "cross_entropy" and classes_of(loss) == 1:
            yield from _of_loss(evidence, loss)


def _of_softmax(evidence: Evidence, call: SoftmaxCall) -> Iterator[Finding]:
    idle = [p for p in trained(evidence, call.parameters) if gets_zeros(evidence, p)]
    if any(parameter.id in call.nearest for parameter in idle):
        value = "0" if call.function == "log_softmax" else "1"
        what = f"the {call.function} over {shape(call.shape)} runs along a dimension of size 1: it returns {value}"
        yield _finding(call, idle, what, _fix(call))


def _fix(call: SoftmaxCall) -> str:
    others = [dim for dim, size in enumerate(call.shape) if size > 1 and dim > 0]
    if others:
        return f"Normalise along the dimension of what competes, dim={others[-1]} of {shape(call.shape)}"
    return "Use a sigmoid for a single output, or one output for each class"


def _of_loss(evidence: Evidence, call: LossCall) -> Iterator[Finding]:
    idle = [p for p in trained(evidence, call.parameters) if gets_zeros(evidence, p)]
    if idle:
        what = f"`cross_entropy` is fed with a single class, {shape(call.shape)}: it returns 0"
        fix = "Use binary_cross_entropy_with_logits for a single output, or one output for each class"
        yield _finding(call, idle, what, fix)


def _finding(call: SoftmaxCall | LossCall, idle: Sequence[Parameter], what: str, fix: str) -> Finding:
    return Finding(
        rule=_SLUG,
        severity=Severity.ERROR,
        tensors=names(idle),
        place=call.place,
        message=f"{what} whatever {named(names(idle))} is",
        fix=fix,
        evidence={"calls": call.calls, "size": 1, "parameters": len(idle)},
    )
