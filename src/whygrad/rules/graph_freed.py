"""`signals`, made at train.py:63, is kept from step to step: its graph was used up by backward at train.py:51.

## What it looks for

A second backward through operations whose saved values the first one has freed.

## Why it does not learn

Backward frees the values that forward saved, as it passes them. If a second backward needs the same operations, it
raises "Trying to backward through the graph a second time". Either two losses share a part of the graph and each calls
`backward()` by itself, or a tensor with a history is kept across iterations: data that went through a layer before the
loop, the hidden state of a recurrent network, a running sum of losses, a cached embedding.

## What it measures

The exception; the tensor whose graph was used up; the line of the backward that did it. If the loop came to the same
backward again with the graph of an earlier step, the line that made the tensor is the place. Otherwise two backward
passes of one step share a graph, and the line of the second is.

## Example

```python bad
import torch
from torch import nn

torch.manual_seed(0)
project, model = nn.Linear(4, 4), nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
signals = project(torch.randn(16, 4)).tanh()  # graph-freed

for _ in range(5):
    loss = (model(signals) - 1).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
```

## Fix

Cut what is kept: `detach()` it, or compute it under `no_grad`, or anew in every iteration if its layer is to learn. Add
up losses that share a graph, and call `backward()` once.

```python good
import torch
from torch import nn

torch.manual_seed(0)
project, model = nn.Linear(4, 4), nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
signals = project(torch.randn(16, 4)).tanh().detach()

for _ in range(5):
    loss = (model(signals) - 1).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
```

`retain_graph=True` keeps the values for a second backward. Where a graph is kept across iterations it only hides the
fault: the graph grows, and gradients are computed at weights that have changed.

## When it is fine

Never: it raises.

## See also

[overwritten-inplace](overwritten-inplace.md): a saved value was changed.
"""

from __future__ import annotations

from collections.abc import Iterator

from whygrad.evidence import Evidence
from whygrad.model import Finding, Severity
from whygrad.rules._base import rule
from whygrad.rules._raised import raised_finding, raised_for, subject
from whygrad.rules._text import at

_SLUG = "graph-freed"


@rule(
    _SLUG,
    title="Backward runs through a graph a second time",
    severity=Severity.ERROR,
    since="0.1.0",
)
def check(evidence: Evidence) -> Iterator[Finding]:
    """Yield the finding about the graph whose second use ended the program."""
    raised = raised_for(evidence, _SLUG)
    if raised is None:
        return
    freed = at(raised.changed_at)
    if raised.made_at is not None:
        kept = f"{subject(raised)}, made{at(raised.made_at)}, is kept from step to step"
        message = f"{kept}: its graph was used up by backward{freed}"
        fix = f"Detach {subject(raised)} where it is kept, or compute it anew in every step"
        yield raised_finding(_SLUG, raised, raised.made_at, message, fix)
    else:
        shared = subject(raised) if raised.tensor else "a part of it"
        message = f"backward{at(raised.place)} needs what backward{freed} freed: {shared} is in both graphs"
        fix = "Add the losses up and call backward once, or pass retain_graph=True to the first backward"
        yield raised_finding(_SLUG, raised, raised.place, message, fix)
