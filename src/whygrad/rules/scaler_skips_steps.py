"""The scaler skipped 30 of 30 steps of `optimizer`: the scaled gradient of `net.0.weight` (+5) overflows.

## What it looks for

A `GradScaler` that leaves out most steps, or just those that a part of the model learns from.

## Why it does not learn

When a scaled gradient is Inf or NaN, `scaler.step()` does not call `optimizer.step()`, and says nothing. At the start
that is meant: the scale is halved until the gradients fit. It goes wrong where they never fit, because the loss is a
sum over thousands of elements or the network overflows half precision by itself; and where one kind of batch is much
larger than the others: the scale grows back on the small ones, and each large one is skipped again, so what only that
loss trains never moves.

## What it measures

Steps made and steps left out, for each optimizer.

- At least half of eight or more steps were left out. A scale that starts at 65536 and has to fall to 1 costs 16 steps;
  in a short run that is as bad for learning as an overflow that stays.
- A parameter got gradients in three or more backward passes and none at any step that was made, while steps were left
  out about as often.
- A quarter of the steps was left out, up to the end of the run.

## Example

```python bad
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(8, 1)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
scaler = torch.amp.GradScaler("cpu", init_scale=2.0**40)

for _ in range(12):
    x = torch.randn(4096, 8)
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype=torch.float16):
        out = model(x)
    loss = (out - 100).float().pow(2).sum()
    scaler.scale(loss).backward()
    scaler.step(optimizer)  # scaler-skips-steps
    scaler.update()
```

## Fix

Take the mean instead of the sum, bring the data to the size of 1, compute the large part of the loss in float32, and
leave `init_scale` alone.

```python good
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(8, 1)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
scaler = torch.amp.GradScaler("cpu")

for _ in range(12):
    x = torch.randn(4096, 8)
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype=torch.float16):
        out = model(x)
    loss = (out - 1).float().pow(2).mean()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
```

## When it is fine

The first steps of a run, while the scale finds its size.

## See also

[nonfinite-gradient](nonfinite-gradient.md): Inf and NaN without a scaler. [unscaled-step](unscaled-step.md).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from whygrad.evidence import Evidence
from whygrad.model import Deed, Finding, Happening, Optimizer, Parameter, Severity
from whygrad.rules._base import rule
from whygrad.rules._loop import places, trained_by, turns_of
from whygrad.rules._select import held_by, names
from whygrad.rules._text import counted, named, passes

_SLUG = "scaler-skips-steps"
_MIN_TRIES = 8
_MOST = 0.5
_MANY = 0.25  # up to the end of the run
_MIN_PASSES = 3
_EXCUSED = 1.5  # passes for each step that was left out: those of a parameter that is starved by them


@rule(
    _SLUG,
    title="The gradient scaler leaves steps out",
    severity=Severity.ERROR,
    since="0.1.0",
    explains=(
        "nonfinite-gradient",
        "exploding-gradient",
        "update-too-small",
        "zero-gradient",
        "no-step",
        "constant-loss",
    ),
)
def check(evidence: Evidence) -> Iterator[Finding]:
    """Yield a finding for each optimizer whose steps are left out, or for what it therefore never trains."""
    for optimizer in evidence.optimizers:
        tries = optimizer.steps + optimizer.skipped
        starved = _starved(evidence, optimizer)
        if tries >= _MIN_TRIES and optimizer.skipped >= _MOST * tries:
            yield _finding(evidence, optimizer, trained_by(evidence, optimizer), Severity.ERROR)
        elif starved:
            yield _starving(evidence, optimizer, starved)
        elif tries >= _MIN_TRIES and optimizer.skipped >= _MANY * tries and _to_the_end(evidence, optimizer):
            yield _finding(evidence, optimizer, trained_by(evidence, optimizer), Severity.WARNING)


def _starved(evidence: Evidence, optimizer: Optimizer) -> list[Parameter]:
    """Return the parameters that get gradients only in steps that are left out."""
    return [
        parameter
        for parameter in held_by(evidence, optimizer)
        if parameter.reached >= _MIN_PASSES
        and not parameter.gradient_steps
        and parameter.requires_grad
        and optimizer.skipped >= _MIN_PASSES
        and parameter.reached <= _EXCUSED * optimizer.skipped
        and optimizer.steps
    ]


def _to_the_end(evidence: Evidence, optimizer: Optimizer) -> bool:
    turns = turns_of(evidence, optimizer)
    last = max((turn.round.last_step for turn in turns), default=0)
    left_out = max((turn.round.last_step for turn in turns if not turn.stepped), default=0)
    return left_out >= 0.75 * last


def _skip(evidence: Evidence, optimizer: Optimizer) -> Happening | None:
    return next((turn.end for turn in turns_of(evidence, optimizer) if turn.end.deed is Deed.SKIP), None)


def _finding(evidence: Evidence, optimizer: Optimizer, affected: Sequence[Parameter], severity: Severity) -> Finding:
    lines = places(_skip(evidence, optimizer))
    tries = optimizer.steps + optimizer.skipped
    return Finding(
        rule=_SLUG,
        severity=severity,
        tensors=names(affected),
        place=lines[0] if lines else optimizer.made_at,
        message=(
            f"The scaler skipped {optimizer.skipped} of {counted(tries, 'step')} of `{optimizer.name}`: the scaled "
            f"gradient of {named(names(affected)) if affected else 'what it holds'} overflows"
        ),
        fix="Make the loss smaller (mean instead of sum, scaled targets), or compute what overflows in float32",
        evidence={"skipped": optimizer.skipped, "steps": optimizer.steps},
        also=() if optimizer.made_at is None else (optimizer.made_at,),
    )


def _starving(evidence: Evidence, optimizer: Optimizer, starved: Sequence[Parameter]) -> Finding:
    lines = places(_skip(evidence, optimizer))
    reached = max(parameter.reached for parameter in starved)
    return Finding(
        rule=_SLUG,
        severity=Severity.ERROR,
        tensors=names(starved),
        place=lines[0] if lines else optimizer.made_at,
        message=(
            f"The scaler skipped every step of `{optimizer.name}` that {named(names(starved))} had a gradient for: "
            f"{optimizer.skipped} steps, {passes(reached)}"
        ),
        fix="Compute the part of the loss that overflows in float32, outside autocast, or give it a smaller weight",
        evidence={"skipped": optimizer.skipped, "steps": optimizer.steps, "reached": reached},
        also=() if optimizer.made_at is None else (optimizer.made_at,),
    )
