"""The learning rate of `optimizer` was 0 in 200 of 200 steps: `head.weight` (+1) stands still.

## What it looks for

A learning rate that is 0, or so far below what it was that it might as well be.

## Why it does not learn

The update of every optimizer is its learning rate times something: at rate 0 the weights stay as they are, whatever the
gradient. Weight decay is scaled by the rate too and stops with it. The rate gets there by a schedule: a warm-up counted
in steps whose scheduler is stepped once per epoch, a decay whose length was reached early because the scheduler is
stepped once per batch, a factor that is multiplied in again at every step.

## What it measures

The rate of each parameter group at every step. A group is stuck where the rate is 0 (or below 1e-8 of the largest it
ever had) in more than half of the steps and at the last one, of at least eight steps. A float32 weight does not change
by an update below 6e-8 of its size; at 1e-8 of a rate that once moved it by its own size, it does not move at all. A
first step at 0 in a warm-up, a schedule that ends at 0, and a rate that is halved on plateaus are thus left alone.

It is a warning where all groups of an optimizer are stuck together for at least a fifth of the steps, eight or more, at
the end or at the beginning: a schedule that was sized for fewer steps than are made, or a warm-up that starts at 0 and
is stepped once per epoch. A schedule of the right length spends one step there, or a few. A rate that jumps between 0
and more than half of its largest freezes, or lets go, on purpose.

It is an info where a group was made with rate 0 beside others that have one: that freezes it on purpose.

The place is the line that stepped the scheduler last, the line that made it, the line that sets the rate by hand, or
the line that made the optimizer.

## Example

```python bad
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
warm_up = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1.0, step / 10))

for epoch in range(2):
    for batch in range(10):
        loss = (model(torch.randn(16, 4)) - 1).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    if epoch > 0:
        warm_up.step()  # zero-learning-rate
```

## Fix

Step a schedule that counts steps after every optimizer step.

```python good
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
warm_up = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1.0, step / 10))

for epoch in range(2):
    for batch in range(10):
        loss = (model(torch.randn(16, 4)) - 1).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        warm_up.step()
```

## When it is fine

A pass at rate 0 on purpose, to fill the statistics of BatchNorm layers.

## See also

[no-step](no-step.md): the optimizer never steps. [frozen-parameter](frozen-parameter.md).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import zip_longest

from whygrad.evidence import Evidence
from whygrad.model import Finding, Optimizer, Parameter, Place, Role, Severity
from whygrad.rules._base import rule
from whygrad.rules._select import held_by, names
from whygrad.rules._text import counted, named, number

_SLUG = "zero-learning-rate"
_MIN_STEPS = 8
_STUCK = 1e-8  # of the largest rate of the group
_LONG = 0.2  # of the steps, at the beginning or the end
_JUMP = 0.5  # of the largest rate
_STILL = 1e-6  # of the largest update of a parameter: below, it stands still


@rule(
    _SLUG,
    title="The learning rate is 0",
    severity=Severity.ERROR,
    since="0.1.0",
    explains=("update-too-small", "update-rounded-away", "decay-dominates"),
)
def check(evidence: Evidence) -> Iterator[Finding]:
    """Yield a finding for each optimizer of which a group is stuck."""
    for optimizer in evidence.optimizers:
        groups = _rates_by_group(evidence, optimizer)
        stuck = [rates for rates in groups if _is_stuck(rates)]
        if stuck:
            yield _finding(evidence, optimizer, stuck, everything=len(stuck) == len(groups))
        elif groups and all(_rests(rates, scheduled=bool(optimizer.scheduler)) for rates in groups):
            yield _resting(evidence, optimizer, groups)


def _rates_by_group(evidence: Evidence, optimizer: Optimizer) -> list[list[float]]:
    """Return the rates of each group, the constructed one first."""
    own = (step for step in evidence.steps if step.optimizer == optimizer.id)
    steps = [step.learning_rates for step in evidence.evenly(own)]
    if len(steps) < _MIN_STEPS:
        return []
    by_group = zip_longest(optimizer.learning_rates, *steps)  # a group that joins later has no rate before
    return [[rate for rate in rates if rate is not None] for rates in by_group]


def _is_stuck(rates: Sequence[float]) -> bool:
    _, *used = rates
    if len(used) < _MIN_STEPS or any(math.isnan(rate) for rate in rates):
        return False
    floor = _STUCK * max(rates)
    return used[-1] <= floor and 2 * _stuck_steps(rates) > len(used)


def _rests(rates: Sequence[float], *, scheduled: bool) -> bool:
    """Return whether a rate is stuck for long after a slow fall, or before a slow rise that is scheduled."""
    _, *used = rates
    if len(used) < _MIN_STEPS or any(math.isnan(rate) for rate in rates):
        return False
    ends = (used[::-1], used) if scheduled else (used[::-1],)
    return any(_is_long_and_slow(each, max(rates)) for each in ends)


def _is_long_and_slow(rates: Sequence[float], largest: float) -> bool:
    stuck = _lead(rates, largest)
    return max(_MIN_STEPS, _LONG * len(rates)) <= stuck < len(rates) and rates[stuck] <= _JUMP * largest


def _lead(rates: Sequence[float], largest: float) -> int:
    """Return how many rates from the first on are stuck."""
    floor = _STUCK * largest
    return next((position for position, rate in enumerate(rates) if rate > floor), len(rates))


def _stuck_steps(rates: Sequence[float]) -> int:
    floor = _STUCK * max(rates)
    return sum(rate <= floor for rate in rates[1:])


def _of_run(evidence: Evidence, optimizer: Optimizer, rates: Sequence[float]) -> Callable[[int], int]:
    """Return how many steps of the run a number of the rates stands for: of a long run, not all were kept."""
    used = len(rates) - 1
    return lambda count: round(count * optimizer.steps / used) if evidence.is_thinned else count


def _finding(
    evidence: Evidence, optimizer: Optimizer, stuck: Sequence[Sequence[float]], *, everything: bool
) -> Finding:
    rates = max(stuck, key=_stuck_steps)
    of_run = _of_run(evidence, optimizer, rates)
    count, total = of_run(_stuck_steps(rates)), of_run(len(rates) - 1)
    held = held_by(evidence, optimizer)
    still = held if everything else [p for p in held if _stands_still(evidence, p)] or held
    on_purpose = not everything and all(group[0] == 0 for group in stuck)
    places = _places(evidence, optimizer, constructed=rates[0])
    who = named(names(still)) if still else "what it holds"
    zero = "0" if rates[-1] == 0 else f"at most {number(_STUCK * max(rates))}"
    return Finding(
        rule=_SLUG,
        severity=Severity.INFO if on_purpose else Severity.ERROR,
        tensors=names(still),
        place=places[0] if places else None,
        message=(
            f"The learning rate of `{optimizer.name}` was {zero} in {count} of {counted(total, 'step')}: "
            f"{who} {'stand' if len(still) > 1 else 'stands'} still"
        ),
        fix=_fix(optimizer, constructed=rates[0], on_purpose=on_purpose),
        evidence={
            "steps": total,
            "stuck_steps": count,
            "constructed_rate": rates[0],
            "largest_rate": max(rates),
            "last_rate": rates[-1],
            "scheduler": optimizer.scheduler,
            "scheduler_steps": optimizer.scheduler_steps,
            "stuck_groups": len(stuck),
        },
        also=tuple(places[1:]),
    )


def _stands_still(evidence: Evidence, parameter: Parameter) -> bool:
    updates = [statistics.sum_abs for _, statistics in evidence.series(Role.UPDATE, parameter.id)]
    return bool(updates) and updates[-1] <= _STILL * max(updates)


def _resting(evidence: Evidence, optimizer: Optimizer, groups: Sequence[Sequence[float]]) -> Finding:
    rates = max(groups, key=_stuck_steps)
    used, largest = rates[1:], max(rates)
    of_run = _of_run(evidence, optimizer, rates)
    at_the_end = of_run(_lead(used[::-1], largest))
    at_the_start = of_run(_lead(used, largest))
    held = names(held_by(evidence, optimizer))
    places = _places(evidence, optimizer, constructed=rates[0])
    end = at_the_end >= at_the_start
    return Finding(
        rule=_SLUG,
        severity=Severity.WARNING,
        tensors=held,
        place=places[0] if places else None,
        message=(
            f"The learning rate of `{optimizer.name}` was 0 in the {'last' if end else 'first'} "
            f"{max(at_the_end, at_the_start)} of {counted(of_run(len(used)), 'step')}: "
            f"{named(held) if held else 'what it holds'} stood still in them"
        ),
        fix=_fix(optimizer, constructed=largest, on_purpose=False),
        evidence={
            "steps": of_run(len(used)),
            "stuck_steps": of_run(_stuck_steps(rates)),
            "stuck_at_the_start": at_the_start,
            "stuck_at_the_end": at_the_end,
            "largest_rate": largest,
            "scheduler": optimizer.scheduler,
            "scheduler_steps": optimizer.scheduler_steps,
        },
        also=tuple(places[1:]),
    )


def _places(evidence: Evidence, optimizer: Optimizer, *, constructed: float) -> list[Place]:
    made = [optimizer.made_at]
    by_hand = [group.rate_set_at for group in evidence.groups if group.optimizer == optimizer.id]
    scheduled = [optimizer.scheduler_stepped_at, optimizer.scheduler_made_at, *by_hand]
    ordered = [*made, *scheduled] if constructed == 0 else [*scheduled, *made]
    return list(dict.fromkeys(place for place in ordered if place is not None))


def _fix(optimizer: Optimizer, *, constructed: float, on_purpose: bool) -> str:
    if on_purpose:
        return "Give the group a learning rate above 0 if it is to learn"
    if constructed == 0:
        return f"Give `{optimizer.name}` a learning rate above 0"
    if not optimizer.scheduler:
        return f"Correct the code that sets the rate of `{optimizer.name}`: no scheduler took it there"
    return (
        f"Step `{optimizer.scheduler}` as often as its lengths are counted: it made "
        f"{counted(optimizer.scheduler_steps, 'step')} in {counted(optimizer.steps, 'step')} of `{optimizer.name}`"
    )
