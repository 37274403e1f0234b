"""`reshape` from [16, 5, 64] to [16, 64, 5] moves no dimension: it deals the values out anew, row by row.

## What it looks for

A `view` or `reshape` with the shapes of a `transpose` or `permute`.

## Why it does not learn

A reshape keeps the order of the values and only draws the borders anew. From [batch, class, point] to [batch, point,
class] the shape is what is wanted, and each "point" now holds the scores of five neighbouring points for one class.
From [layers, batch, features] to [batch, layers * features], as for the last state of an LSTM, each row mixes samples.
The loss then compares values with targets of other places; what can be learned is an average.

## What it measures

In the traced steps, the shapes before and after each `view`, `reshape` and `flatten` that a backward pass led back to,
on the side of the model and on that of the data. Reported are those that look as if a dimension had moved, sizes of 1
aside:

- one dimension stands at the other end of a group of others, which are the same, merged or split: [B, C, H, W] to
  [B, H * W, C];
- two that enclose a third were merged, or split around one: [B, L, D] to [B, H, L, D / H] and back, [T, B, D] to
  [B, T * D];
- the middle one is last: [B, C, L] to [B * L, C]. If C divides L, a split of L gives that as well, and it is reported
  only right before `cross_entropy` or `nll_loss`.

Where sizes are equal nothing can be told, and nothing is said. [4, 24] to [24, 4] is what `view(-1, 4)` gives: two
dimensions of which one divides the other are left alone. So is a reshape that another one takes back or flattens
at once, and one that prediction and target both go through.

## Example

```python bad
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Conv1d(4, 3, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(5):
    scores = model(torch.randn(8, 4, 10))
    scores = scores.reshape(8, 10, 3)  # scrambled-reshape
    loss = nn.functional.cross_entropy(scores.flatten(0, 1), torch.randint(0, 3, (80,)))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
```

## Fix

Move the dimension with `transpose` or `permute`; a reshape that merges neighbours may follow.

```python good
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Conv1d(4, 3, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(5):
    scores = model(torch.randn(8, 4, 10))
    scores = scores.transpose(1, 2)
    loss = nn.functional.cross_entropy(scores.flatten(0, 1), torch.randint(0, 3, (80,)))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
```

## When it is fine

Right behind a layer that sees all positions at once, before anything of meaning was given to them.
"""

from __future__ import annotations

from collections.abc import Iterator

from whygrad.evidence import Evidence
from whygrad.model import Event, Finding, Parameter, Severity
from whygrad.rules._base import rule
from whygrad.rules._losses import ids_in, seen_often, shape, trained
from whygrad.rules._select import names

_SLUG = "scrambled-reshape"
_SCRAMBLED = "scrambled_reshape"  # event: a reshape where a dimension was to be moved


@rule(
    _SLUG,
    title="A reshape where a transpose was meant",
    severity=Severity.WARNING,
    since="0.1.0",
    explains=("softmax-dim", "vanishing-gradient", "update-too-small", "target-mismatch"),
)
def check(evidence: Evidence) -> Iterator[Finding]:
    """Yield a finding for each line with such a reshape."""
    for event in evidence.events_of(_SCRAMBLED):
        if seen_often(event.count):
            yield _finding(evidence, event)


def _finding(evidence: Evidence, event: Event) -> Finding:
    before, after = event.detail["before"], event.detail["after"]
    return Finding(
        rule=_SLUG,
        severity=Severity.WARNING,
        tensors=names(_concerned(evidence, event)),
        place=event.place,
        message=f"`{event.subject}` from {shape(before)} to {shape(after)} moves no dimension: it deals the values out "
        "anew, row by row",
        fix="Move the dimension with transpose or permute before any reshape",
        evidence={"calls": event.count, "before": shape(before), "after": shape(after)},
    )


def _concerned(evidence: Evidence, event: Event) -> list[Parameter]:
    """Return what is trained of the models that made the values, or that the losses behind train."""
    before = trained(evidence, ids_in(event))
    roots = {parameter.root for parameter in before}
    behind = {number for call in evidence.losses for number in call.parameters}
    return [p for p in trained(evidence, behind | set(ids_in(event))) if p.root in roots]
