"""Clipping to 0.01 takes all but 1/6100 of the gradient in 100 of 100 steps: `out.weight` moves by 2e-05 of its size.

## What it looks for

A limit so far below the gradients that clipping is no brake for outliers, but the step itself.

## Why it does not learn

Clipping scales the gradient down to the limit. When nearly every batch is clipped, the step has the length
`learning rate x limit`, whatever the loss says; with a limit that is thousands of times too low, it is a tiny share of
what the learning rate promises. The loss goes down, very slowly, and looks like a learning rate that is too small.

## What it measures

For each line that clips: the norm before, the limit, and how often it was exceeded; for `clip_grad_value_`, and where a
program clamps gradients one by one (`p.grad.clamp_(-c, c)`, seen in the first steps), the norm of
the gradients as backward left them against that of those the step used, in the recorded steps. It is a finding where
90% of at least eight calls clip, by a factor of 10 or more on the (geometric) average, and the median step moves the
weights by less than 1e-4 of their norm. The last condition makes the difference: recurrent networks train well with
every batch clipped by 10 at a large learning rate. Where the step is 1e-3 of the weights, the usual size of a healthy
one, no limit was too low. Adam and its kin divide by the size of the gradient and are judged only below 1e-6, where
`eps` begins to count.

## Example

```python bad
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(8, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

for _ in range(20):
    loss = (model(torch.randn(16, 8)) - 30).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 0.001)  # clipped-away
    optimizer.step()
```

## Fix

Raise the limit to what the norm usually is, so that only outliers are clipped.

```python good
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(8, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

for _ in range(20):
    loss = (model(torch.randn(16, 8)) - 30).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 100.0)
    optimizer.step()
```

## When it is fine

Fine-tuning that is meant to move the weights by very little.

## See also

[clip-misplaced](clip-misplaced.md): clipped while the loss scale is on.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator
from typing import NamedTuple

from whygrad.evidence import Evidence
from whygrad.model import Clip, Finding, Optimizer, Severity
from whygrad.rules._base import rule
from whygrad.rules._loop import is_adaptive, step_size, trained_by
from whygrad.rules._select import names
from whygrad.rules._text import named, number

_SLUG = "clipped-away"
_MIN_CALLS = 8
_SHARE = 0.9  # of the calls clip
_FACTOR = 10.0
_STEP = 1e-4  # of the weights' norm
_ADAPTIVE_STEP = 1e-6


@rule(
    _SLUG,
    title="Clipping takes nearly all of the gradient",
    severity=Severity.ERROR,
    since="0.1.0",
    explains=("update-too-small", "update-rounded-away", "vanishing-gradient", "decay-dominates"),
)
def check(evidence: Evidence) -> Iterator[Finding]:
    """Yield a finding for each line that clips nearly all of an optimizer's gradient."""
    for clip in evidence.clips:
        for number_of in clip.optimizers if clip.scale is None else ():
            optimizer = evidence.optimizer_by_id.get(number_of)
            loss = None if optimizer is None else _loss(evidence, optimizer, clip)
            step = None if optimizer is None else step_size(evidence, optimizer)
            if optimizer is not None and loss is not None and step is not None and step < _limit(optimizer):
                yield _finding(evidence, optimizer, clip, loss, step)


class _Loss(NamedTuple):
    """What clipping took away."""

    factor: float  # gradient before through gradient after, on the average
    clipped: int  # of the calls or steps that were measured
    measured: int


def _loss(evidence: Evidence, optimizer: Optimizer, clip: Clip) -> _Loss | None:
    """Return what clipping took away if it was most of the gradient nearly every time."""
    measured = _of_norm(clip) if clip.measured else _of_steps(evidence, optimizer)
    often = measured.measured >= _MIN_CALLS and measured.clipped >= _SHARE * measured.measured
    return measured if often and measured.factor >= _FACTOR else None


def _of_norm(clip: Clip) -> _Loss:
    return _Loss(clip.factor or 1.0, clip.clipped, clip.measured)


def _of_steps(evidence: Evidence, optimizer: Optimizer) -> _Loss:
    """Compare the gradients that backward left with those that the steps used."""
    factors = [
        step.backward_l2 / step.gradient_l2
        for step in evidence.evenly(s for s in evidence.steps if s.optimizer == optimizer.id and s.gradient_l2)
        if step.gradient_l2 and step.backward_l2 and math.isfinite(step.backward_l2)
    ]
    average = math.exp(statistics.fmean(map(math.log, factors))) if factors else 1.0
    return _Loss(average, sum(factor >= _FACTOR for factor in factors), len(factors))


def _limit(optimizer: Optimizer) -> float:
    return _ADAPTIVE_STEP if is_adaptive(optimizer) else _STEP


def _finding(evidence: Evidence, optimizer: Optimizer, clip: Clip, loss: _Loss, step: float) -> Finding:
    held = trained_by(evidence, optimizer)
    return Finding(
        rule=_SLUG,
        severity=Severity.ERROR,
        tensors=names(held),
        place=clip.place,
        message=(
            f"Clipping to {number(clip.limit or 0.0)} takes all but 1/{loss.factor:.0f} of the gradient in "
            f"{loss.clipped} of {loss.measured} steps: {named(names(held))} moves by {number(step)} of its size a step"
        ),
        fix=(
            f"Raise the limit to about {number(clip.norm)}, the usual norm of the gradient"
            if clip.norm is not None
            else "Raise the limit to the size of the largest elements of the gradient"
        ),
        evidence={
            "limit": clip.limit,
            "norm": clip.norm,
            "factor": loss.factor,
            "clipped": loss.clipped,
            "calls": clip.calls,
            "step_size": step,
        },
        also=() if optimizer.made_at is None else (optimizer.made_at,),
    )
