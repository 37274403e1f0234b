"""`optimizer` steps on the sum of 8 mean losses, 8 times the gradient of their mean: the loss rose from 1.02 to 31.

## What it looks for

Gradients accumulated over several backward passes, whose losses are divided by nothing, or twice.

## Why it does not learn

`backward()` adds. Eight passes over parts of a batch, each with a loss that is the mean over its part, leave eight
times the gradient of the mean over the whole, and a learning rate that was right for one becomes eight times too large.
The reverse comes from frameworks that divide for you: `accelerator.backward(loss)` divides by
`gradient_accumulation_steps` already. A loop that divides as well, or that steps after every pass, takes steps that are
too small by that factor.

## What it measures

For each line that calls backward: how often it runs between two steps, the constants that the top of the graph
multiplies the loss by, whether a mean stands behind them, and what Accelerate divides by.

- Summed: a mean loss, run from one line n times a round in at least 60% of the rounds, times a constant of 2/n or more.
  That is no fault by itself (a sum over tasks; a learning rate chosen for it), so it is one only where the loss at the
  end is not finite, or is not below nine tenths of that at the start while the median step is 2% of the weights or
  more (20 times the usual 1e-3), and the optimizer is none that divides by the size of the gradient.
- Divided twice: Accelerate divides by n, the program by n as well.
- Divided for nothing: Accelerate divides by n, the optimizer steps after every pass. An info for optimizers that
  divide by the size of the gradient: to them it makes no difference.

## Example

```python bad
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(8, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.3)

for _ in range(12):
    optimizer.zero_grad()
    for part in torch.randn(32, 8).split(4):
        loss = (model(part) - 1).pow(2).mean()
        loss.backward()  # accumulation-scaling
    optimizer.step()
```

## Fix

Divide each loss by the number of passes, or weight it by its share of the batch.

```python good
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(8, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.3)

for _ in range(12):
    optimizer.zero_grad()
    for part in torch.randn(32, 8).split(4):
        loss = (model(part) - 1).pow(2).mean() / 8
        loss.backward()
    optimizer.step()
```

## When it is fine

A sum of the losses of several tasks, with a learning rate that fits it.

## See also

[zero-grad-misplaced](zero-grad-misplaced.md): only the last pass counts. [missing-zero-grad](missing-zero-grad.md).
"""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from whygrad.evidence import Evidence
from whygrad.model import Deed, Finding, LossScale, Optimizer, Severity
from whygrad.rules._base import rule
from whygrad.rules._loop import MIN_ROUNDS, Turn, is_adaptive, step_size, total, trained_by, whole_turns
from whygrad.rules._select import names
from whygrad.rules._text import named, number

_SLUG = "accumulation-scaling"
_USUAL = 0.6  # of the rounds run the line as often
_TOO_MUCH = 2.0  # times the gradient of the mean
_FALLEN = 0.9  # of the loss at the start
_LARGE_STEP = 0.02  # of the weights' norm


@dataclass(frozen=True, slots=True)
class _Line:
    """A line that calls backward, and how often it runs in a round."""

    scale: LossScale
    runs: int

    @property
    def own(self) -> float:
        """Return the constant that the program itself multiplies the loss by."""
        return self.scale.factor * max(1, self.scale.divided_by)


@rule(
    _SLUG,
    title="Accumulated gradients are not scaled as meant",
    severity=Severity.ERROR,
    since="0.1.0",
    explains=(
        "exploding-gradient",
        "update-too-large",
        "update-too-small",
        "nonfinite-gradient",
        "dead-relu",
        "saturated-activation",
    ),
)
def check(evidence: Evidence) -> Iterator[Finding]:
    """Yield a finding for each optimizer and each line whose losses are summed, or divided twice."""
    for optimizer in evidence.optimizers:
        turns = [turn for turn in whole_turns(evidence, optimizer) if turn.stepped and turn.own_passes()]
        for line in _lines(evidence, turns):
            finding = _judged(evidence, optimizer, line, total(turns))
            if finding is not None:
                yield finding


def _lines(evidence: Evidence, turns: Sequence[Turn]) -> Iterator[_Line]:
    """Yield each line of which it is known how often it runs in a round."""
    rounds = total(turns)
    for scale in evidence.loss_scales:
        runs: Counter[int] = Counter()
        for turn in turns:
            passes = (each for each in turn.happenings if each.deed is Deed.BACKWARD and turn.reaches(each))
            runs[sum(each.times for each in passes if each.place == scale.place)] += turn.count
        if not runs:
            continue
        usual, often = runs.most_common(1)[0]
        if usual and rounds >= MIN_ROUNDS and often >= _USUAL * rounds:
            yield _Line(scale, usual)


def _judged(evidence: Evidence, optimizer: Optimizer, line: _Line, rounds: int) -> Finding | None:
    scale, n = line.scale, line.runs
    if scale.divided_by > 1 and n == 1:
        return _finding(evidence, optimizer, line, rounds, _for_nothing(optimizer, line))
    if scale.divided_by > 1 and n == scale.divided_by and math.isclose(line.own * n, 1, rel_tol=1e-3):
        return _finding(evidence, optimizer, line, rounds, _twice(optimizer, line))
    too_much = scale.factor * n
    if n > 1 and scale.mean and too_much >= _TOO_MUCH and not is_adaptive(optimizer):
        losses = _losses(evidence, optimizer)
        if losses is not None and not losses[1] < _FALLEN * losses[0] and _overshoots(evidence, optimizer, losses[1]):
            return _finding(evidence, optimizer, line, rounds, _summed(optimizer, line, losses))
    return None


def _losses(evidence: Evidence, optimizer: Optimizer) -> tuple[float, float] | None:
    """Return the loss at the start and at the end; None where too few are known."""
    own = (step for step in evidence.steps if step.optimizer == optimizer.id and step.loss is not None)
    losses = [step.loss for step in evidence.evenly(own) if step.loss is not None]
    if len(losses) < 8:
        return None
    return statistics.median(losses[:3]), statistics.median(losses[-(len(losses) // 4) :])


def _overshoots(evidence: Evidence, optimizer: Optimizer, last: float) -> bool:
    """Return whether steps that are too large are why the loss does not fall."""
    size = step_size(evidence, optimizer)
    return not math.isfinite(last) or (size is not None and size >= _LARGE_STEP)


_Verdict = tuple[Severity, str, str]


def _summed(optimizer: Optimizer, line: _Line, losses: tuple[float, float]) -> _Verdict:
    first, last = losses
    times = number(line.scale.factor * line.runs)
    message = (
        f"`{optimizer.name}` steps on the sum of {line.runs} mean losses, {times} times the gradient of their mean: "
        f"the loss went from {number(first)} to {number(last)}"
    )
    return Severity.ERROR, message, f"Divide each loss by {line.runs}, or weight it by its share of the batch"


def _twice(optimizer: Optimizer, line: _Line) -> _Verdict:
    message = (
        f"The loss is divided by {line.runs} twice, by Accelerate and by the program: the steps of "
        f"`{optimizer.name}` are {line.runs} times too small"
    )
    return Severity.WARNING, message, "Leave the division to `accelerator.backward`"


def _for_nothing(optimizer: Optimizer, line: _Line) -> _Verdict:
    divisor = line.scale.divided_by
    message = (
        f"Accelerate divides the loss by {divisor}, and `{optimizer.name}` steps after every backward pass: its steps "
        f"are {divisor} times too small"
    )
    fix = "Accumulate within `accelerator.accumulate(model)`, or leave `gradient_accumulation_steps` at 1"
    return Severity.INFO if is_adaptive(optimizer) else Severity.WARNING, message, fix


def _finding(evidence: Evidence, optimizer: Optimizer, line: _Line, rounds: int, verdict: _Verdict) -> Finding:
    severity, message, fix = verdict
    held = trained_by(evidence, optimizer)
    stepped = () if optimizer.stepped_at is None else (optimizer.stepped_at,)
    return Finding(
        rule=_SLUG,
        severity=severity,
        tensors=names(held),
        place=line.scale.place,
        message=f"{message} ({named(names(held))})" if held else message,
        fix=fix,
        evidence={
            "passes_per_step": line.runs,
            "factor": line.scale.factor,
            "divided_by_framework": line.scale.divided_by,
            "rounds": rounds,
        },
        also=stepped,
    )
