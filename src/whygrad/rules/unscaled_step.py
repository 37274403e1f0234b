"""`optimizer` steps on gradients that still carry the loss scale: those of `head.weight` are 65536 times too large.

## What it looks for

A loss that `GradScaler.scale` multiplied, and an optimizer that steps without anybody dividing the gradients again.

## Why it does not learn

The scale is there to keep small half precision gradients from becoming 0. It has to go before the step:
`scaler.step(optimizer)` divides by it, skips the step if something overflowed, and then steps. `optimizer.step()` in
its place uses gradients that are thousands of times too large: plain gradient descent flies apart; Adam, which divides
by the size of the gradient, hides it, until clipping, weight decay in the gradient or an overflow shows it.

## What it measures

The order of backward passes on scaled losses, `unscale_` (which `scaler.step` calls by itself) and steps, in every
round of the run. It is a finding where an optimizer steps with a scale still on its gradients in at least half of its
rounds, three or more.

## Example

```python bad
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 1)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
scaler = torch.amp.GradScaler("cpu")

for _ in range(10):
    loss = (model(torch.randn(16, 4)) - 1).pow(2).mean()
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    optimizer.step()  # unscaled-step
```

## Fix

Let the scaler step.

```python good
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 1)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
scaler = torch.amp.GradScaler("cpu")

for _ in range(10):
    loss = (model(torch.randn(16, 4)) - 1).pow(2).mean()
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
```

## When it is fine

Gradients that the program divides by the scale itself: call `scaler.unscale_(optimizer)` instead.

## See also

[clip-misplaced](clip-misplaced.md): clipped while scaled. [scaler-skips-steps](scaler-skips-steps.md).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from whygrad.evidence import Evidence
from whygrad.model import Deed, Finding, Happening, Mark, Optimizer, Severity, Step
from whygrad.rules._base import rule
from whygrad.rules._loop import CLEARS, Turn, has, is_habit, places, total, trained_by, whole_turns
from whygrad.rules._select import names
from whygrad.rules._text import counted, named

_SLUG = "unscaled-step"
_DIVIDED = 0.1  # of the gradient is left at the step: the program divided it by hand


@rule(
    _SLUG,
    title="The optimizer steps on scaled gradients",
    severity=Severity.ERROR,
    since="0.1.0",
    explains=(
        "exploding-gradient",
        "update-too-large",
        "nonfinite-gradient",
        "clip-misplaced",
        "clipped-away",
        "dead-relu",
        "saturated-activation",
    ),
)
def check(evidence: Evidence) -> Iterator[Finding]:
    """Yield a finding for each optimizer that steps on scaled gradients."""
    for optimizer in evidence.optimizers:
        turns = [turn for turn in whole_turns(evidence, optimizer) if turn.stepped and turn.own_passes()]
        scaled = [(turn, own) for turn in turns if (own := _scaled_pass(turn)) is not None]
        if is_habit([turn for turn, _ in scaled], turns) and not _divided_by_hand(evidence.steps, optimizer):
            yield _finding(evidence, optimizer, scaled, turns)


def _scaled_pass(turn: Turn) -> Happening | None:
    """Return the pass whose scaled gradients the step used, if there is one."""
    scaled: Happening | None = None
    for happening in turn.happenings:
        if happening.deed is Deed.UNSCALE or happening.deed in CLEARS:
            scaled = None
        elif turn.reaches(happening) and has(happening, Mark.SCALED):
            scaled = happening
    return scaled


def _divided_by_hand(steps: Sequence[Step], optimizer: Optimizer) -> bool:
    """Return whether the gradients were as small at the step as they were before the loss was scaled."""
    sizes = [
        (step.gradient_l2, step.backward_l2)
        for step in steps
        if step.optimizer == optimizer.id and step.gradient_l2 is not None and step.backward_l2
    ]
    return bool(sizes) and all(at_step <= (1 + _DIVIDED) * unscaled for at_step, unscaled in sizes)


def _finding(
    evidence: Evidence, optimizer: Optimizer, scaled: Sequence[tuple[Turn, Happening]], turns: Sequence[Turn]
) -> Finding:
    held = trained_by(evidence, optimizer)
    turn, own = scaled[0]
    steps = total(each for each, _ in scaled)
    factor = _factor(evidence.steps, optimizer)
    times = f" {factor:.0f} times" if factor is not None else ""
    lines = places(turn.end, own)
    return Finding(
        rule=_SLUG,
        severity=Severity.ERROR,
        tensors=names(held),
        place=lines[0] if lines else optimizer.stepped_at,
        message=(
            f"`{optimizer.name}` steps on gradients that still carry the loss scale in {steps} of "
            f"{counted(total(turns), 'step')}: those of {named(names(held))} are{times} too large"
        ),
        fix=f"Call `scaler.step({optimizer.name})` and `scaler.update()` instead of `{optimizer.name}.step()`",
        evidence={"scaled_steps": steps, "steps": total(turns), "factor": factor},
        also=lines[1:],
    )


def _factor(steps: Sequence[Step], optimizer: Optimizer) -> float | None:
    """Return how many times larger than the program's own the gradients were, at the first recorded step."""
    for step in steps:
        if step.optimizer == optimizer.id and step.gradient_l2 is not None and step.backward_l2:
            return step.gradient_l2 / step.backward_l2
    return None
