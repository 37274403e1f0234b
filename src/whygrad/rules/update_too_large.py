"""the first updates of `0.weight` (+2) are up to 12 times its size, at rate 1, and the loss went from 0.7 to 9.

## What it looks for

A learning rate so high that the first steps overwrite the weights, in a run whose loss does not recover.

## Why it does not learn

An update as large as the weight leaves nothing of its initialisation: the next gradient belongs to another network.
Units saturate or die, normalisations divide by huge spreads, and the loss stays on a plateau or jumps around. With Adam
each element moves by the learning rate, so that a rate of 0.1 is a weight's whole size. With SGD it is the rate times
the gradient, which a sum in place of a mean makes hundreds of times larger.

## What it measures

The root mean square of each update against that of the weight before it, at a sample of recorded steps. Reported is an
optimizer where more than half of its matrices and kernels were changed by at least half their size in one of the first
ten steps that were looked at, and by at least 2% in the median of all later ones, or by three times their size in one
of the first; and whose loss, in the median of the last quarter of the run, is above 90% of what it was at the first
step. Matrices that start within 0.001 of zero are not counted.

In the healthy programs of the corpus the largest such ratio was 0.55, in one matrix of two, on a run whose loss fell to
a hundredth. Large ratios alone are no fault: heads that start near zero have them.

## Example

```python bad
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=1.0)  # update-too-large
for _ in range(40):
    x = torch.randn(64, 8)
    loss = nn.functional.cross_entropy(model(x), (x[:, 0] > 0).long())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
```

## Fix

Lower the rate by factors of ten, or warm it up.

```python good
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for _ in range(40):
    x = torch.randn(64, 8)
    loss = nn.functional.cross_entropy(model(x), (x[:, 0] > 0).long())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
```

## When it is fine

A search over learning rates.

## See also

[exploding-gradient](exploding-gradient.md): sizes grow step by step. [dead-relu](dead-relu.md): what may be left.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from whygrad.evidence import Evidence
from whygrad.model import Finding, Group, Optimizer, Parameter, Role, Severity
from whygrad.rules._base import rule
from whygrad.rules._select import held_by, names
from whygrad.rules._sizes import Samples, is_taught, median, samples
from whygrad.rules._text import named, number
from whygrad.rules._updates import group_of, is_weight, losses, step_ratios

_SLUG = "update-too-large"
_MIN_STEPS = 12
_FIRST = 10
_LARGE = 0.5  # of the weight, in one of the first steps
_OVERWRITING = 3.0  # of the weight: nothing is left of it, whatever comes later
_LATER = 0.02  # in the median of the later ones
_NOT_BETTER = 0.9  # of the first loss
_NEAR_ZERO = 1e-3


@rule(
    _SLUG,
    title="The updates are as large as the weights",
    severity=Severity.WARNING,
    since="0.1.0",
    explains=(
        "constant-loss",
        "vanishing-gradient",
        "zero-gradient",
        "saturated-activation",
        "shift-invariant-parameter",
    ),
)
def check(evidence: Evidence) -> Iterator[Finding]:
    """Yield one finding for each optimizer whose first steps overwrite its weights."""
    values = losses(evidence)
    if len(values) < _MIN_STEPS or median(values[-(len(values) // 4) :]) <= _NOT_BETTER * values[0]:
        return
    updates, weights = samples(evidence, Role.UPDATE), samples(evidence, Role.WEIGHT)
    for optimizer in evidence.optimizers:
        mine = [p for p in held_by(evidence, optimizer) if is_weight(p) and is_taught(evidence, p)]
        counted = [p for p in mine if _begins_apart_from_zero(weights, p) and group_of(evidence, p) is not None]
        ratios = {p.id: step_ratios(updates, weights, p) for p in counted}
        large = [p for p in counted if _is_large(ratios[p.id])]
        if 2 * len(large) > len(counted):
            yield _finding(evidence, optimizer, large, ratios, values)


def _begins_apart_from_zero(weights: Samples, parameter: Parameter) -> bool:
    seen = weights.get(parameter.id, {})
    return bool(seen) and seen[min(seen)].rms > _NEAR_ZERO


def _is_large(ratios: Mapping[int, float]) -> bool:
    ordered = [ratios[step] for step in sorted(ratios)]
    if len(ordered) < _MIN_STEPS:
        return False
    largest = max(ordered[:_FIRST])
    return largest >= _OVERWRITING or (largest >= _LARGE and median(ordered[_FIRST:]) >= _LATER)


def _finding(
    evidence: Evidence,
    optimizer: Optimizer,
    large: Sequence[Parameter],
    ratios: Mapping[int, Mapping[int, float]],
    values: Sequence[float],
) -> Finding:
    largest = {p.id: max(ratios[p.id][step] for step in sorted(ratios[p.id])[:_FIRST]) for p in large}
    worst = max(large, key=lambda parameter: largest[parameter.id])
    tensors = names((worst, *(parameter for parameter in large if parameter is not worst)))
    groups: list[Group] = [group for group in evidence.groups if group.optimizer == optimizer.id]
    rate = max((group.highest_learning_rate for group in groups), default=0.0)
    last = median(values[-(len(values) // 4) :])
    return Finding(
        rule=_SLUG,
        severity=Severity.WARNING,
        tensors=tensors,
        place=optimizer.made_at or optimizer.stepped_at,
        message=(
            f"the first updates of {named(tensors)} are up to {number(largest[worst.id])} times its size, at rate "
            f"{number(rate)}, and the loss went from {number(values[0])} to {number(last)}"
        ),
        fix=f"Lower the learning rate of `{optimizer.name}` by factors of ten, or warm it up",
        evidence={
            "largest_ratio": largest[worst.id],
            "learning_rate": rate,
            "loss_first": values[0],
            "loss_last": last,
            "steps": optimizer.steps,
            "parameters": len(tensors),
        },
    )
