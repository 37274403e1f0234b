"""`body.weight` (+3) was trained apart on 2 ranks: DistributedDataParallel averaged its gradient in 0 of 60 steps.

## What it looks for

A model that `DistributedDataParallel` wraps, and that is called without the wrapper: as `model.module(x)`, through one
of its submodules, through a method of its own (`model.module.loss(x)`), or through another model whose layers it is
patched into. Or the gradients are taken by `torch.autograd.grad`, which runs none of the wrapper's hooks.

## Why it does not learn

The wrapper's own `forward` tells its reducer that a backward pass is coming. Where it was not called, the reducer's
hooks return at once: no error, no warning, and each rank steps on the gradient of its own share of the data. The ranks
train different models, each on a fraction of the batch, and the one that is saved saw only the data of rank 0.

## What it measures

For each wrapper: calls with grad enabled, backward passes that brought its parameters gradients, and optimizer steps
whose last backward pass had no call of the wrapper before it. That alone is no fault: the program may average the
gradients itself. So the ranks are compared: before every step, each measures its own copy of every parameter. Copies
that were equal and differ from some step on to the end (by more than 1e-9 of the sum of their sizes, where equal copies
differ by nothing), after a step on gradients that differ, were trained apart. Copies that become equal again are
averaged now and then, as in local SGD, and are left alone. With one rank's run file nothing can be said.

The place is the line that called the wrapped model or one of its modules without the wrapper.

## Example

```python bad
# torchrun --nproc-per-node=2 train.py
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
torch.manual_seed(0)
model = DistributedDataParallel(nn.Linear(4, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
torch.manual_seed(dist.get_rank())

for step in range(10):
    loss = (model.module(torch.randn(16, 4)) - 1).pow(2).mean()  # ddp-bypassed
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
```

## Fix

Call the wrapper.

```python good
# torchrun --nproc-per-node=2 train.py
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
torch.manual_seed(0)
model = DistributedDataParallel(nn.Linear(4, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
torch.manual_seed(dist.get_rank())

for step in range(10):
    loss = (model(torch.randn(16, 4)) - 1).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
```

What needs a method other than `forward` goes into a module that calls it in its `forward`, and that is wrapped.

## When it is fine

Validation and sampling with `model.module` under `torch.no_grad()`; gradients that the program averages itself.

## See also

[rank-divergence](rank-divergence.md): ranks that part for other reasons.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from whygrad.evidence import Evidence
from whygrad.model import Finding, Replica, Severity
from whygrad.rules._base import ranks_rule
from whygrad.rules._ranks import Cause, Parting, parting_finding, partings
from whygrad.rules._select import names
from whygrad.rules._text import at, counted, named

_SLUG = "ddp-bypassed"


@ranks_rule(
    _SLUG,
    title="The model runs without its DistributedDataParallel wrapper",
    severity=Severity.ERROR,
    since="0.1.0",
    explains=("rank-divergence",),
)
def check(ranks: Sequence[Evidence]) -> Iterator[Finding]:
    """Yield a finding for each wrapped model that was trained apart because its wrapper was not called."""
    for parting in partings(ranks):
        if parting.cause is Cause.OUTSIDE and parting.replica is not None:
            yield _finding(ranks, parting, parting.replica)


def _finding(ranks: Sequence[Evidence], parting: Parting, replica: Replica) -> Finding:
    steps, averaged = replica.steps or parting.compared, replica.steps - replica.local_steps
    were = "was" if len(parting.parameters) == 1 else "were"
    message = (
        f"{named(names(parting.parameters))} {were} trained apart on {counted(len(ranks), 'rank')}: "
        f"DistributedDataParallel averaged the gradients in {averaged} of {counted(steps, 'step')}"
    )
    fix = (
        f"Let the forward pass go through the wrapper made{at(replica.made_at)}, or average the gradients by all_reduce"
    )
    places = (replica.outside_at, replica.local_at, replica.made_at)
    return parting_finding(_SLUG, ranks, parting, places, message=message, fix=fix)
