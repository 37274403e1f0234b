"""DistributedDataParallel waits for a gradient of `aux.weight` (+1) that never comes: the program ended with an error.

## What it looks for

"Expected to have finished reduction in the prior iteration before starting a new one": the error by which
`DistributedDataParallel` says, one call later, that a backward pass did not reach all of its parameters.

## Why it does not learn

The wrapper starts to average a bucket of gradients when the last one in it has come. A parameter that the loss does not
depend on holds its bucket back for ever, with all other gradients in it: the averaging of that step is never finished,
and the next call of the wrapper refuses to start another one.

## What it measures

The error's own list of parameters, by position in the wrapper, and what was traced of each: no operation took it; its
result never reaches the loss; or it got gradients in other steps, so that it depends on the batch, or on the rank,
which parameters are used.

The place is the line that made the layer that is never used, the last use of one whose result is ignored, or the line
that wraps the model, where parameters are used by turns.

## Example

```python bad
# torchrun --nproc-per-node=2 train.py
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
torch.manual_seed(0)

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(4, 1)
        self.aux = nn.Linear(4, 1)  # ddp-unused-parameter

    def forward(self, x):
        return self.body(x)

model = DistributedDataParallel(Net())
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(10):
    loss = (model(torch.randn(16, 4)) - 1).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
```

## Fix

Delete the layer, or let the loss depend on it.

```python good
# torchrun --nproc-per-node=2 train.py
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
torch.manual_seed(0)

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(4, 1)

    def forward(self, x):
        return self.body(x)

model = DistributedDataParallel(Net())
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(10):
    loss = (model(torch.randn(16, 4)) - 1).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
```

Where parameters are used by turns, `DistributedDataParallel(model, find_unused_parameters=True)` looks in every step
which of them will get a gradient.

## When it is fine

Never: the program has ended.

## See also

[unused-parameter](unused-parameter.md): without the wrapper such a parameter only stays as it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from whygrad.evidence import Evidence
from whygrad.model import Finding, Parameter, PathEnd, Place, Raised, Replica, Severity
from whygrad.rules._base import rule
from whygrad.rules._raised import DDP_UNUSED, raised_for
from whygrad.rules._select import names
from whygrad.rules._text import named

_SLUG = "ddp-unused-parameter"
_INDICES = re.compile(r"did not receive grad for rank \d+: ([\d ]+)")


@rule(
    _SLUG,
    title="DistributedDataParallel waits for a gradient that never comes",
    severity=Severity.ERROR,
    since="0.1.0",
    explains=("unused-parameter", "unreached-parameter", "rank-divergence"),
)
def check(evidence: Evidence) -> Iterator[Finding]:
    """Yield a finding if that error ended the program."""
    raised = raised_for(evidence, DDP_UNUSED)
    if raised is None:
        return
    replica, missing = _missing(evidence, raised)
    places = tuple(dict.fromkeys(p for p in _places(raised, replica, missing) if p is not None))
    waited = named(names(missing)) if missing else f"`{raised.tensor}`" if raised.tensor else "some parameter"
    yield Finding(
        rule=_SLUG,
        severity=Severity.ERROR,
        tensors=names(missing) or ((raised.tensor,) if raised.tensor else ()),
        place=places[0] if places else None,
        message=(
            f"DistributedDataParallel waits for a gradient of {waited} that never comes: "
            "the program ended with an error"
        ),
        fix=_fix(missing),
        evidence={
            "raised": raised.type,
            "reason": raised.reason,
            "missing": len(missing),
            "backwards": 0 if replica is None else replica.backwards,
            "steps_with_gradient": max((parameter.gradient_steps for parameter in missing), default=0),
        },
        also=places[1:],
    )


def _missing(evidence: Evidence, raised: Raised) -> tuple[Replica | None, tuple[Parameter, ...]]:
    """Return the wrapper and the parameters that the error lists, by their position in the wrapper."""
    found = _INDICES.search(raised.message)
    indices = [int(index) for index in found[1].split()] if found else []
    known = {parameter.id: parameter for parameter in evidence.parameters}
    for replica in evidence.replicas:
        ids = [replica.parameters[index] for index in indices if index < len(replica.parameters)]
        missing = tuple(known[number] for number in ids if number in known)
        if missing and (not raised.tensor or raised.tensor in names(missing)):
            return replica, missing
    return None, tuple(parameter for parameter in evidence.parameters if parameter.name == raised.tensor)


def _places(raised: Raised, replica: Replica | None, missing: Sequence[Parameter]) -> Iterator[Place | None]:
    wrapped = None if replica is None else replica.made_at
    if _is_by_turns(missing):
        yield wrapped
    yield from (p.ends_at for p in missing if p.path is PathEnd.IGNORED)
    yield from (p.made_at for p in missing)
    yield wrapped
    yield raised.place


def _is_by_turns(missing: Sequence[Parameter]) -> bool:
    return any(parameter.gradient_steps for parameter in missing)


def _fix(missing: Sequence[Parameter]) -> str:
    if _is_by_turns(missing):
        return "Pass find_unused_parameters=True to DistributedDataParallel, since not every step uses every parameter"
    if any(parameter.path is PathEnd.IGNORED for parameter in missing):
        return "Let the loss depend on what is computed with it, or pass find_unused_parameters=True"
    return "Delete it, use it in forward(), or pass find_unused_parameters=True to DistributedDataParallel"
