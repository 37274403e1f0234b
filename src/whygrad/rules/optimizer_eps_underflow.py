"""eps=1e-08 of `optimizer` is 0 in float16, and `body.weight` (+5) became NaN or Inf at its first step.

## What it looks for

An optimizer whose eps cannot be told from zero in the precision of the weights it steps.

## Why it does not learn

Adam divides by the root of the average squared gradient plus eps. In float16 the smallest number above zero is 6e-8,
and what is below half of it is stored as 0: so is eps=1e-8, the default. So is the square of a gradient below 0.0002.
The division becomes 0 / 0 or x / 0, and the weight NaN or Inf, though the gradient was fine.

## What it measures

The eps of each parameter group against half of the smallest float16 number, 3e-8; whether parameters of the group are
float16; and the first recorded step after which their update or weight was NaN or Inf while all gradients up to then
were finite. All three have to hold: with large gradients eps does not matter. In bfloat16, which has the range of
float32, eps=1e-8 is no problem.

## Example

```python bad
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 1).half()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)  # optimizer-eps-underflow
for _ in range(8):
    x = torch.rand(16, 4).half()
    loss = (0.001 * model(x).float()).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
```

## Fix

Keep the weights in float32 and compute under `torch.autocast`, or give an eps that float16 can hold.

```python good
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 1).half()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, eps=1e-4)
for _ in range(8):
    x = torch.rand(16, 4).half()
    loss = (model(x).float() - 1).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
```

## When it is fine

Never where it is reported: the weights are lost.

## See also

[fp16-underflow](fp16-underflow.md): the gradient itself is lost. [nonfinite-gradient](nonfinite-gradient.md).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from whygrad.evidence import Evidence
from whygrad.model import Finding, Group, Parameter, Role, Severity
from whygrad.rules._base import rule
from whygrad.rules._select import names
from whygrad.rules._text import named, number

_SLUG = "optimizer-eps-underflow"
_LOST = 2.0**-25  # half of the smallest float16 above zero


@rule(
    _SLUG,
    title="The optimizer's eps is zero in half precision",
    severity=Severity.ERROR,
    since="0.1.0",
    explains=(
        *("nonfinite-gradient", "exploding-gradient", "vanishing-gradient", "zero-gradient", "update-too-large"),
        *("fp16-underflow", "update-rounded-away", "update-too-small", "constant-loss", "decay-dominates"),
    ),
)
def check(evidence: Evidence) -> Iterator[Finding]:
    """Yield one finding for each group that broke its weights."""
    for group in evidence.groups:
        if group.eps < _LOST:  # NaN, where there is none, is not
            half = [p for p in evidence.parameters if p.id in group.parameters and p.dtype == "float16"]
            broken = [(step, p) for p in half if (step := _broken_at(evidence, p)) is not None]
            first = min((step for step, _ in broken), default=None)
            if first is not None and not _gradient_broken_before(evidence, first):
                yield _finding(evidence, group, first, [p for _, p in broken])


def _broken_at(evidence: Evidence, parameter: Parameter) -> int | None:
    totals = (evidence.total(role, parameter.id) for role in (Role.UPDATE, Role.WEIGHT))
    steps = (total.first_nonfinite_step for total in totals if total is not None)
    return min((step for step in steps if step is not None), default=None)


def _gradient_broken_before(evidence: Evidence, step: int) -> bool:
    firsts = (t.first_nonfinite_step for t in evidence.totals if t.role is Role.GRADIENT)
    return any(first is not None and first <= step for first in firsts)


def _finding(evidence: Evidence, group: Group, first: int, broken: Sequence[Parameter]) -> Finding:
    optimizer = evidence.optimizer_by_id[group.optimizer]
    return Finding(
        rule=_SLUG,
        severity=Severity.ERROR,
        tensors=names(broken),
        place=optimizer.made_at or optimizer.stepped_at,
        message=(
            f"eps={number(group.eps)} of `{optimizer.name}` is 0 in float16, and {named(names(broken))} became NaN or "
            f"Inf at step {first}, though all gradients were finite"
        ),
        fix=f"Keep the weights in float32 and compute under torch.autocast, or give `{optimizer.name}` eps=1e-4",
        evidence={
            "eps": group.eps,
            "smallest_float16": 2 * _LOST,
            "first_nonfinite_step": first,
            "parameters": len(broken),
            "elements": sum(parameter.numel for parameter in broken),
        },
    )
