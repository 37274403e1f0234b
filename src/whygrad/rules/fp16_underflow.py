"""61% of the gradient of `encoder.weight` (+3) is 0 in float16: what is left is at most 2.2e-06, where bits run out.

## What it looks for

Gradients in float16 that are too small to be stored.

## Why it does not learn

float16 holds numbers from 6.1e-5 on in full precision, from 6e-8 on with fewer and fewer bits, and nothing below. The
gradients of a network are often smaller than its weights and outputs by a factor of a thousand or a million: a mean
over a batch of images divides by all their pixels. Those that do not fit become exactly 0, and the parameters behind
them get nothing. It goes for float16 weights, and for `torch.autocast` in float16, where the gradients of the outputs
are float16 though the weights are not.

## What it measures

The zeros and the largest element of the gradients of float16 parameters, and of module outputs in float16, at all
recorded steps. A tensor is reported if at least half of all elements of its gradient were 0, and no element ever
reached 6.1e-5, the end of full precision: zeros by a ReLU or a mask leave the other elements their size. At least five
steps must have been recorded, and some float16 gradient must lie between 0 and that end: where all are 0, something
else is the cause.

The place is the line that calls backward, where the loss should be scaled; of float16 weights, the one that made the
optimizer.

bfloat16 has the range of float32, and is none of this rule's business.

## Example

```python bad
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 1)).half()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)  # fp16-underflow
for _ in range(8):
    x = torch.randn(32, 8).half()
    loss = 1e-6 * (model(x).float() - 1).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
```

## Fix

Keep the weights in float32, compute under `torch.autocast`, and scale the loss with `torch.amp.GradScaler`, which looks
for a factor that brings gradients into the range of float16, and takes it out again before the step.

```python good
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(8):
    x = torch.randn(32, 8)
    loss = 1e-6 * (model(x).float() - 1).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
```

## When it is fine

A loss that is near zero because there is nothing left to learn.

## See also

[optimizer-eps-underflow](optimizer-eps-underflow.md): the optimizer's eps is lost.
[vanishing-gradient](vanishing-gradient.md): small in any precision.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from whygrad.evidence import Evidence
from whygrad.model import Finding, Parameter, Place, Role, Severity, Total
from whygrad.rules._base import rule
from whygrad.rules._select import holder, names, optimizers_of
from whygrad.rules._sizes import backward_line, is_taught, outputs_by
from whygrad.rules._text import named, number

_SLUG = "fp16-underflow"
_MIN_STEPS = 5
_LOST = 0.5  # of the elements
_NORMAL = 2.0**-14  # the smallest float16 in full precision


@rule(
    _SLUG,
    title="Gradients are too small for float16",
    severity=Severity.ERROR,
    since="0.1.0",
    explains=("zero-gradient", "vanishing-gradient", "update-too-small", "decay-dominates", "dead-relu"),
)
def check(evidence: Evidence) -> Iterator[Finding]:
    """Yield one finding for all parameters whose gradients are lost."""
    taught = [p for p in evidence.parameters_in_order if len(p.shape) > 1 and is_taught(evidence, p)]
    totals = {p.id: _of_half(evidence, p) for p in taught}
    lost = {key: found[0] for key, each in totals.items() if (found := [total for total in each if _is_lost(total)])}
    faint = any(0 < total.statistics.max_abs < _NORMAL for each in totals.values() for total in each)
    if lost and faint:
        yield _finding(evidence, [p for p in taught if p.id in lost], lost)


def _of_half(evidence: Evidence, parameter: Parameter) -> list[Total]:
    """Return the totals of the float16 gradients that a parameter's own is computed from, and of its own."""
    halves = [o.id for o in outputs_by(evidence, holder(evidence, parameter)) if o.dtype == "float16"]
    totals = [evidence.total(Role.OUTPUT_GRADIENT, number) for number in halves]
    if parameter.dtype == "float16":
        totals.append(evidence.total(Role.GRADIENT, parameter.id))
    return [total for total in totals if total is not None]


def _is_lost(total: Total) -> bool:
    numbers = total.statistics
    return (
        total.steps >= _MIN_STEPS
        and not numbers.nonfinite
        and numbers.zero_share >= _LOST
        and numbers.max_abs < _NORMAL
    )


def _finding(evidence: Evidence, hit: Sequence[Parameter], lost: dict[int, Total]) -> Finding:
    worst = max(hit, key=lambda parameter: lost[parameter.id].statistics.zero_share)
    numbers = lost[worst.id].statistics
    tensors = names((worst, *(parameter for parameter in hit if parameter is not worst)))
    places = _places(evidence, hit, worst)
    return Finding(
        rule=_SLUG,
        severity=Severity.ERROR,
        tensors=tensors,
        place=places[0] if places else None,
        message=(
            f"{number(100 * numbers.zero_share)}% of the gradient of {named(tensors)} is 0 in float16: what is left is "
            f"at most {number(numbers.max_abs)}, and below 6.1e-05 float16 loses precision"
        ),
        fix="Keep the weights in float32, compute under torch.autocast, and scale the loss with torch.amp.GradScaler",
        evidence={
            "zero_share": numbers.zero_share,
            "largest": numbers.max_abs,
            "smallest_normal_float16": _NORMAL,
            "recorded_steps": lost[worst.id].steps,
            "parameters": len(tensors),
        },
        also=tuple(places[1:]),
    )


def _places(evidence: Evidence, hit: Sequence[Parameter], worst: Parameter) -> list[Place]:
    """Return the lines to look at, the likeliest first: float32 weights need their loss scaled, at backward."""
    made = [optimizer.made_at for parameter in hit for optimizer in optimizers_of(evidence, parameter)][:1]
    scaled = [] if worst.dtype == "float16" else [backward_line(evidence)]
    return list(dict.fromkeys(place for place in (*scaled, *made, worst.made_at) if place is not None))
