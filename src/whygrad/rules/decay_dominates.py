"""weight decay 0.05 pulls `enc.0.weight` (+5) 12 times harder than the loss: its size fell to 1% of what it was.

## What it looks for

Weight decay that moves the weights more than the gradient does, until nothing is left of them.

## Why it does not learn

Weight decay adds `weight_decay * weight` to the gradient (SGD, Adam), or takes `lr * weight_decay * weight` off the
weight at each step (AdamW). Where that is larger than what the loss asks for, the weights go to zero, the output
becomes a constant, and the gradient, which is multiplied by the weights, gets smaller with them. With Adam's own scale
it happens at decays that look harmless for SGD: gradients are often 1e-3, and 0.05 times a weight of 0.1 is more.

## What it measures

The pull of the decay against that of the loss at a sample of the recorded steps, and the size of each weight over time.
Where decay goes through the gradient, the pull is `weight_decay * |weight| / |gradient|`; where it is decoupled, it is
`lr * weight_decay * |weight| / |update|`. Reported are matrices and kernels

- on which the decay pulled harder in the median of at least ten steps (1 for the first kind; 0.7 of the update for the
  second, which contains it),
- and whose size, in the median of the last third of them, was half or less of what it was at first.

Named beside them are those that shrank as far under at least half of that pull: the products that they are part of
vanish together.

Over the healthy programs of the corpus the first ratio was at most 0.1, the second at most 0.03, and no matrix shrank
by more than 20%. It is an error where more than half of what the optimizer decays goes that way, else a warning.

## Example

```python bad
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=1.0)  # decay-dominates
for _ in range(60):
    x = torch.randn(32, 8)
    loss = 0.1 * (model(x) - x[:, :1]).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
```

## Fix

Decay less: 1e-4 or below for Adam, or AdamW, whose 0.01 is multiplied by the learning rate.

```python good
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=1e-4)
for _ in range(60):
    x = torch.randn(32, 8)
    loss = 0.1 * (model(x) - x[:, :1]).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
```

## When it is fine

Weights that are to vanish: a penalty that prunes.

## See also

[zero-gradient](zero-gradient.md): only the decay is left. [update-too-small](update-too-small.md).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from whygrad.evidence import Evidence
from whygrad.model import Finding, Group, Parameter, Role, Severity
from whygrad.rules._base import rule
from whygrad.rules._select import names
from whygrad.rules._sizes import Samples, is_taught, median, samples
from whygrad.rules._text import named, number
from whygrad.rules._updates import group_of

_SLUG = "decay-dominates"
_MIN_STEPS = 10
_HARDER = 1.0  # than the gradient
_OF_UPDATE = 0.7
_ALONG = 0.5  # of those limits, for weights that shrink beside one that decay is too strong for
_SHRUNK = 0.5  # of the size at the first step


@dataclass(frozen=True, slots=True)
class _Pull:
    """What decay does to one weight."""

    parameter: Parameter
    ratio: float  # median, of the decay against the gradient or the update
    left: float  # of the size at the first step


@rule(
    _SLUG,
    title="Weight decay is stronger than the loss",
    severity=Severity.ERROR,
    since="0.1.0",
    explains=(
        *("vanishing-gradient", "constant-loss", "zero-gradient", "update-too-large", "update-too-small"),
        *("dead-relu", "symmetric-init"),
    ),
)
def check(evidence: Evidence) -> Iterator[Finding]:
    """Yield one finding for each group that is decayed away."""
    decayed = [group for group in evidence.groups if group.weight_decay > 0]
    if not decayed:
        return
    measured = {role: samples(evidence, role) for role in (Role.GRADIENT, Role.WEIGHT, Role.UPDATE)}
    for group in decayed:
        held = [p for p in evidence.parameters if p.id in group.parameters and is_taught(evidence, p)]
        mine = [p for p in held if len(p.shape) > 1 and group_of(evidence, p) == group]
        pulls = [pull for p in mine if (pull := _pull(measured, group, p)) is not None]
        strong = [pull for pull in pulls if _is_too_strong(group, pull)]
        if strong:
            along = [pull for pull in pulls if pull not in strong and _is_too_strong(group, pull, part=_ALONG)]
            yield _finding(evidence, group, (strong, along), held, whole=2 * len(strong) > len(mine))


def _pull(measured: dict[Role, Samples], group: Group, parameter: Parameter) -> _Pull | None:
    weights = measured[Role.WEIGHT].get(parameter.id, {})
    against = measured[Role.UPDATE if group.decoupled else Role.GRADIENT].get(parameter.id, {})
    factor = group.weight_decay * (group.highest_learning_rate if group.decoupled else 1.0)
    common = [step for step in against if step in weights and against[step].rms > 0]
    ratios = [factor * weights[step].rms / against[step].rms for step in common]
    sizes = [weights[step].rms for step in sorted(weights)]
    if len(ratios) < _MIN_STEPS or not sizes[0] > 0:
        return None
    return _Pull(parameter, median(ratios), median(sizes[-len(sizes) // 3 :]) / sizes[0])


def _is_too_strong(group: Group, pull: _Pull, part: float = 1.0) -> bool:
    return pull.ratio >= part * (_OF_UPDATE if group.decoupled else _HARDER) and pull.left <= _SHRUNK


def _finding(
    evidence: Evidence,
    group: Group,
    found: tuple[Sequence[_Pull], Sequence[_Pull]],
    held: Sequence[Parameter],
    *,
    whole: bool,
) -> Finding:
    strong, along = found
    optimizer = evidence.optimizer_by_id[group.optimizer]
    worst = min(strong, key=lambda pull: pull.left)
    hit = [pull.parameter for pull in (*strong, *along)]
    beside = [p for p in held if p not in hit and any(p.module == other.module for other in hit)]
    tensors = names((*hit, *beside))
    pulls = (
        f"is {number(100 * min(1.0, worst.ratio))}% of the update of {named(tensors)}"
        if group.decoupled
        else f"pulls {named(tensors)} {number(worst.ratio)} times harder than the loss"
    )
    return Finding(
        rule=_SLUG,
        severity=Severity.ERROR if whole else Severity.WARNING,
        tensors=tensors,
        place=optimizer.made_at or optimizer.stepped_at,
        message=(
            f"weight decay {number(group.weight_decay)} {pulls}: the size of `{worst.parameter.name}` fell to "
            f"{number(100 * worst.left)}% of what it was"
        ),
        fix=f"Give `{optimizer.name}` a far smaller weight_decay: 1e-4 or below where it goes through the gradient",
        evidence={
            "weight_decay": group.weight_decay,
            "decoupled": group.decoupled,
            "learning_rate": group.highest_learning_rate,
            "pull": worst.ratio,
            "size_left": worst.left,
            "parameters": len(tensors),
        },
    )
