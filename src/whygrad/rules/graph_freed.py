"""`signals`, made at train.py:63, is kept from step to step: its graph was used up by backward at train.py:51.

## What it looks for

A second backward through operations whose saved values the first one has freed.

## Why it does not learn

Backward frees the values that forward saved, as it passes them. If a second backward needs the same operations, it
raises "Trying to backward through the graph a second time". Either two losses share a part of the graph and each calls
`backward()` by itself, or a tensor with a history is kept across iterations: data that went through a layer before the
loop, the hidden state of a recurrent network, a running sum of losses, a cached embedding.

## What it measures

The exception; the tensor whose graph was used up, with the line that made it; and the line of the backward that did it.
Where steps were made before it, the tensor was kept from an earlier one, and its line is the place. Where none was
made, two backward passes share a graph, and the line of the second is.

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
from whygrad.model import Finding, Place, Raised, Severity
from whygrad.rules._base import rule
from whygrad.rules._paths import raised_for
from whygrad.rules._text import at, named

_SLUG = "graph-freed"


@rule(
    _SLUG,
    title="Backward runs through a graph a second time",
    severity=Severity.ERROR,
    since="0.1.0",
    explains=("no-backward", "no-step"),
)
def check(evidence: Evidence) -> Iterator[Finding]:
    """Yield the finding about the graph whose second use ended the program."""
    raised = raised_for(evidence, _SLUG)
    if raised is None:
        return
    steps = evidence.info.steps
    if steps and raised.made_at is not None:
        yield _finding(raised, raised.made_at, _kept(raised), _kept_fix(raised), steps)
    else:
        fix = "Add the losses up and call backward once, or pass retain_graph=True to the first backward"
        yield _finding(raised, raised.place or raised.changed_at, _twice(raised), fix, steps)


def _tensor(raised: Raised) -> str:
    return named((raised.tensor,)) if raised.tensor else "a tensor"


def _kept(raised: Raised) -> str:
    used = f"its graph was used up by backward{at(raised.changed_at)}"
    return f"{_tensor(raised)}, made{at(raised.made_at)}, is kept from step to step: {used}"


def _kept_fix(raised: Raised) -> str:
    return f"Detach {_tensor(raised)} where it is kept, or compute it anew in every step"


def _twice(raised: Raised) -> str:
    shared = f"{_tensor(raised)}, made{at(raised.made_at)}," if raised.made_at is not None else "what it depends on"
    return f"backward{at(raised.place)} runs through a graph that backward{at(raised.changed_at)} freed: {shared} is shared"


def _finding(raised: Raised, place: Place | None, message: str, fix: str, steps: int) -> Finding:
    further = (raised.made_at, raised.changed_at, raised.place)
    return Finding(
        rule=_SLUG,
        severity=Severity.ERROR,
        tensors=(raised.tensor,) if raised.tensor else (),
        place=place,
        message=message,
        fix=fix,
        evidence={"raised": raised.type, "reason": raised.reason, "steps": steps},
        also=tuple(dict.fromkeys(each for each in further if each is not None and each != place)),
    )
