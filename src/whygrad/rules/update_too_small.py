"""75 steps of `optimizer` take no weight further than 9.6% of its size, and the loss stays at 0.69: its rate is 1e-6.

## What it looks for

Optimizers whose steps are too short to get anywhere in the run.

## Why it does not learn

How far a weight can go is the sum of its updates. With Adam each is about the learning rate, so that 100 steps at 1e-6
take a weight of 0.05 by 0.2% at most. With SGD it is the rate times the gradient, and gradients of 1e-4 are common. The
usual causes are a warm-up that was sized for a longer run and never ends, a schedule whose number of steps is wrong, a
rate that was meant for another optimizer, and a loss that is divided once too often.

## What it measures

The way of each matrix, kernel and table: the size of its updates at recorded steps times its number of steps, against
its own size; that is how far it would get if all updates went one way. And the losses: whether the median of the last
quarter of steps is below that of the first by more than 3% and more than the noise.

An optimizer is reported if the loss has not fallen over at least twenty steps and its weights' longest way is below

- 15% of the weight, where the rate rose at nine in ten steps and was at most a fifth of the rate that its schedule
  works from: the whole run lay in the warm-up;
- 2% of the weight, otherwise.

A way below 0.05% of the weight is reported also where the losses seem to have fallen, as long as 70% of them are left:
so short a way changes no loss by more than the batches do.

So is a single group, whatever the loss does, whose weights' longest way is below 0.01% of the weight and a thousandth
of another group's: rates that fall from layer to layer, as fine-tuning has them, stay far closer together.

Over the healthy programs of the corpus, of 60 to 100 steps each, the longest way was never below 34%. Weights that were
loaded with `load_state_dict`, or that another optimizer moved before, are fine-tuned, and left alone: there a short way
may be enough. So are runs that an exception ended, and runs whose loss is not known.

The place is the line that made the scheduler in the first case, that set the rate or made the optimizer in the second.

## Example

```python bad
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-7)  # update-too-small
for _ in range(30):
    x = torch.randn(64, 4)
    loss = (model(x) - x[:, :1] - 1).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
```

## Fix

Size warm-up and schedule by the number of steps that are really made; raise the rate by factors of ten until the loss
falls.

```python good
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for _ in range(30):
    x = torch.randn(64, 4)
    loss = (model(x) - x[:, :1] - 1).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
```

## When it is fine

The first steps of a long training that was stopped early.

## See also

[zero-learning-rate](zero-learning-rate.md): the rate is 0. [vanishing-gradient](vanishing-gradient.md): the gradient
is what is small. [update-rounded-away](update-rounded-away.md): half precision loses the update.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from whygrad.evidence import Evidence
from whygrad.model import Finding, Group, Optimizer, Parameter, Place, Severity
from whygrad.rules._base import rule
from whygrad.rules._select import has_crashed, held_by, names
from whygrad.rules._sizes import is_taught, median
from whygrad.rules._text import counted, named, number
from whygrad.rules._updates import group_of, has_fallen, is_weight, losses, travel

_SLUG = "update-too-small"
_MIN_STEPS = 20
_SHORT = 0.02  # of the weight
_SHORT_IN_WARM_UP = 0.15
_HARDLY = 5e-4  # too short a way for a loss to fall because of it
_MOSTLY_THERE = 0.7  # of the loss is left: noise may look like such a fall
_NOWHERE = 1e-4  # of the weight, in one group of several
_APART = 1000.0  # times as far goes another group
_RISING = 0.9  # of the steps
_BELOW_BASE = 0.2  # of the rate that the schedule works from


@rule(
    _SLUG,
    title="The updates are too small to get anywhere",
    severity=Severity.WARNING,
    since="0.1.0",
    explains=("constant-loss", "shift-invariant-parameter", "symmetric-init"),
)
def check(evidence: Evidence) -> Iterator[Finding]:
    """Yield one finding for each optimizer that gets nowhere."""
    yield from _of_single_groups(evidence)
    values = losses(evidence)
    if len(values) < _MIN_STEPS or has_crashed(evidence) or not evidence.info.ended:
        return
    fallen = has_fallen(values)
    if fallen and not _is_mostly_there(values):
        return
    for optimizer in evidence.optimizers:
        held = [p for p in held_by(evidence, optimizer) if is_taught(evidence, p)]
        weights = [p for p in held if is_weight(p) and not p.loaded and group_of(evidence, p) is not None]
        ways = {p.id: way for p in weights if not math.isnan(way := travel(evidence, p))}
        groups = [group for group in evidence.groups if group.optimizer == optimizer.id and group.steps]
        if optimizer.steps < _MIN_STEPS or not ways or 2 * optimizer.zero_rate_steps > optimizer.steps:
            continue
        warming = [group for group in groups if _is_warming_up(group)]
        longest = max(ways.values())
        short = _SHORT_IN_WARM_UP if len(warming) == len(groups) else _SHORT
        if 0 < longest < (_HARDLY if fallen else short):
            yield _finding(optimizer, groups, held, longest, values, warming=bool(warming))


def _is_mostly_there(values: Sequence[float]) -> bool:
    """Return whether the fall of a loss from the first quarter to the last is small enough to come from the data."""
    quarter = max(1, len(values) // 4)
    first, last = median(values[:quarter]), median(values[-quarter:])
    return first > 0 and last >= _MOSTLY_THERE * first


def _of_single_groups(evidence: Evidence) -> Iterator[Finding]:
    """Yield one finding for each group that stands still while others of its optimizer move."""
    for optimizer in evidence.optimizers:
        groups = [g for g in evidence.groups if g.optimizer == optimizer.id and g.highest_learning_rate > 0]
        ways = {group.id: way for group in groups if (way := _longest(evidence, group)) > 0}
        farthest = max(ways.values(), default=0.0)
        for group in groups:
            if group.steps >= _MIN_STEPS and 0 < ways.get(group.id, 0.0) < min(_NOWHERE, farthest / _APART):
                yield _of_group(evidence, optimizer, group, ways[group.id], farthest)


def _longest(evidence: Evidence, group: Group) -> float:
    held = (p for p in evidence.parameters if p.id in group.parameters and is_weight(p) and not p.loaded)
    ways = (travel(evidence, parameter) for parameter in held if group_of(evidence, parameter) == group)
    return max((way for way in ways if not math.isnan(way)), default=0.0)


def _of_group(evidence: Evidence, optimizer: Optimizer, group: Group, way: float, farthest: float) -> Finding:
    held = [p for p in evidence.parameters if p.id in group.parameters and p.gradient_steps]
    places = _places(optimizer, [group], warming=False)
    return Finding(
        rule=_SLUG,
        severity=Severity.WARNING,
        tensors=names(held),
        place=places[0] if places else None,
        message=(
            f"{counted(group.steps, 'step')} of `{optimizer.name}` take {named(names(held))} no further than "
            f"{number(100 * way)}% of its size, at rate {number(group.highest_learning_rate)}, and others "
            f"{number(farthest / way)} times as far"
        ),
        fix=f"Give this group of `{optimizer.name}` a larger learning rate, or requires_grad_(False) if it is to stay",
        evidence={
            "steps": group.steps,
            "longest_way": way,
            "longest_way_of_others": farthest,
            "highest_learning_rate": group.highest_learning_rate,
            "position": group.position,
        },
        also=tuple(places[1:]),
    )


def _is_warming_up(group: Group) -> bool:
    base = max((r for r in (group.learning_rate, group.base_learning_rate) if not math.isnan(r)), default=0.0)
    return group.rises >= _RISING * (group.steps - 1) and group.highest_learning_rate <= _BELOW_BASE * base


def _finding(
    optimizer: Optimizer,
    groups: Sequence[Group],
    held: Sequence[Parameter],
    longest: float,
    values: Sequence[float],
    *,
    warming: bool,
) -> Finding:
    highest = max(group.highest_learning_rate for group in groups)
    places = _places(optimizer, groups, warming=warming)
    weight = max(held, key=lambda parameter: parameter.numel)
    ordered = (weight, *(parameter for parameter in held if parameter is not weight))
    last = median(values[-len(values) // 4 :])
    why = f"its rate was still rising, at {number(highest)}" if warming else f"its rate is {number(highest)}"
    return Finding(
        rule=_SLUG,
        severity=Severity.WARNING,
        tensors=names(ordered),
        place=places[0] if places else None,
        message=(
            f"{counted(optimizer.steps, 'step')} of `{optimizer.name}` take no weight further than "
            f"{number(100 * longest)}% of its size, and the loss stays at {number(last)}: "
            f"{why} ({named(names(ordered))})"
        ),
        fix=(
            "Size warm-up and schedule by the number of steps that are really made"
            if warming
            else f"Give `{optimizer.name}` a larger learning rate, by factors of ten until the loss falls"
        ),
        evidence={
            "steps": optimizer.steps,
            "longest_way": longest,
            "highest_learning_rate": highest,
            "learning_rate_as_made": max(group.learning_rate for group in groups),
            "scheduler": optimizer.scheduler,
            "loss_first": median(values[: len(values) // 4]),
            "loss_last": last,
        },
        also=tuple(places[1:]),
    )


def _places(optimizer: Optimizer, groups: Sequence[Group], *, warming: bool) -> list[Place]:
    scheduled = [optimizer.scheduler_made_at, optimizer.scheduler_stepped_at] if warming else []
    by_hand = [group.rate_set_at for group in groups]
    return list(dict.fromkeys(p for p in (*scheduled, *by_hand, optimizer.made_at) if p is not None))
