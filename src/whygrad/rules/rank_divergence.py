"""`body.weight` (+3) differs between 2 ranks from step 1 on: the backward pass before the step ran under no_sync().

## What it looks for

Parameters that every rank should hold equal copies of, and that are not equal any more: of models that
`DistributedDataParallel` wraps, and of models whose gradients the program averages itself.

## Why it does not learn

Data-parallel training is one training only as long as all ranks start from equal weights, step on equal gradients, and
step alike. Once copies have parted nothing brings them together again: each gradient is an average over different
models, and the weights that rank 0 saves are not those that the averages were made for.

## What it measures

Each rank measures its own copy of every parameter before every step. Equal copies have equal statistics, to the last
bit, on any rank; a difference above 1e-9 of the sum of sizes at some step, and at all later ones that were recorded, is
a parting. What was recorded of the step before tells the cause:

- the copies differ before the first step: initial values by different seeds, or written after the model was wrapped;
- the gradients differ (by more than 1e-6), and DistributedDataParallel did not average them: the last backward pass
  before the step ran under `no_sync()`, or was the second one after a single call of the wrapper;
- the gradients differ, of a parameter that was unfrozen or added after the model was wrapped, which the wrapper knows
  nothing of;
- the gradients differ although they were averaged: they were changed afterwards;
- the gradients are equal, and the learning rates are not, or the update is not.

Without a wrapper, a model is compared only if every gradient is the same on all ranks at every recorded step. Copies
that become equal again are averaged on purpose, as in local SGD; with a communication hook that stands in for the
average, the finding is an info. Buffers, such as those of BatchNorm, are not compared.

The place is the line that caused the parting: the last `no_sync()`, the backward pass, the line that wraps the model,
the one that makes it, or the one that steps.

## Example

```python bad
# torchrun --nproc-per-node=2 train.py
from contextlib import nullcontext

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
torch.manual_seed(0)
model = DistributedDataParallel(nn.Linear(4, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
torch.manual_seed(dist.get_rank())

for batch in range(20):
    is_last = batch % 2 == 0
    with nullcontext() if is_last else model.no_sync():  # rank-divergence
        loss = (model(torch.randn(16, 4)) - 1).pow(2).mean() / 2
        loss.backward()
    if batch % 2 == 1:
        optimizer.step()
        optimizer.zero_grad()
```

## Fix

Leave `no_sync()` for the last micro-batch before the step.

```python good
# torchrun --nproc-per-node=2 train.py
from contextlib import nullcontext

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
torch.manual_seed(0)
model = DistributedDataParallel(nn.Linear(4, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
torch.manual_seed(dist.get_rank())

for batch in range(20):
    is_last = batch % 2 == 1
    with nullcontext() if is_last else model.no_sync():
        loss = (model(torch.randn(16, 4)) - 1).pow(2).mean() / 2
        loss.backward()
    if batch % 2 == 1:
        optimizer.step()
        optimizer.zero_grad()
```

## When it is fine

Ranks that hold different models or different parts of one; local SGD, which averages the weights every few steps.

## See also

[ddp-bypassed](ddp-bypassed.md): the wrapper is not called at all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from whygrad.evidence import Evidence
from whygrad.model import Finding, Optimizer, Place, Severity
from whygrad.rules._base import ranks_rule
from whygrad.rules._ranks import Cause, Parting, parting_finding, partings, stepped_at
from whygrad.rules._select import names, optimizers_of
from whygrad.rules._text import counted, named

_SLUG = "rank-divergence"


@dataclass(frozen=True, slots=True)
class _Case:
    """What is said about one cause."""

    why: str
    fix: str
    places: Callable[[Evidence, Parting], tuple[Place | None, ...]]


@ranks_rule(
    _SLUG,
    title="Ranks that should hold equal weights do not",
    severity=Severity.ERROR,
    since="0.1.0",
)
def check(ranks: Sequence[Evidence]) -> Iterator[Finding]:
    """Yield a finding for each model and cause by which copies parted."""
    for parting in partings(ranks):
        case = _CASES.get(parting.cause)
        if case is not None:
            differ = "differs" if len(parting.parameters) == 1 else "differ"
            since = f"from step {parting.first} on" if parting.first else "from the start"
            message = (
                f"{named(names(parting.parameters))} {differ} between {counted(len(ranks), 'rank')} {since}: {case.why}"
            )
            yield parting_finding(_SLUG, ranks, parting, case.places(ranks[0], parting), message=message, fix=case.fix)


def _no_sync(evidence: Evidence, parting: Parting) -> tuple[Place | None, ...]:
    replica = parting.replica
    first = () if replica is None else (replica.no_sync_at, replica.local_at)
    return (*first, stepped_at(evidence, parting.parameters[0]))


def _backward(evidence: Evidence, parting: Parting) -> tuple[Place | None, ...]:
    replica = parting.replica
    first = () if replica is None else (replica.local_at, replica.called_at)
    return (*first, stepped_at(evidence, parting.parameters[0]))


def _wrapped(_evidence: Evidence, parting: Parting) -> tuple[Place | None, ...]:
    first = () if parting.replica is None else (parting.replica.made_at,)
    return (*first, *(parameter.made_at for parameter in parting.parameters))


def _started(evidence: Evidence, parting: Parting) -> tuple[Place | None, ...]:
    root = parting.parameters[0].root
    parts = tuple(parameter.made_at for parameter in parting.parameters)
    if parting.replica is None:
        return (*(m.made_at for m in evidence.modules if m.root == root and not m.name), *parts)
    # A wrapper makes all ranks equal: what counts was written after it, not where the layer was made.
    written = (p.written_at for p in parting.parameters if not _is_same_line(p.written_at, p.made_at))
    return (*written, parting.replica.made_at, *parts)


def _is_same_line(one: Place | None, other: Place | None) -> bool:
    return one is not None and other is not None and (one.file, one.line) == (other.file, other.line)


def _rated(evidence: Evidence, parting: Parting) -> tuple[Place | None, ...]:
    held = optimizers_of(evidence, parting.parameters[0])
    return tuple(place for optimizer in held for place in _of_rate(optimizer))


def _of_rate(optimizer: Optimizer) -> tuple[Place | None, ...]:
    return optimizer.scheduler_stepped_at, optimizer.scheduler_made_at, optimizer.made_at


def _stepped(evidence: Evidence, parting: Parting) -> tuple[Place | None, ...]:
    return (stepped_at(evidence, parting.parameters[0]),)


_CASES = {
    Cause.NO_SYNC: _Case(
        "the last backward pass before the step ran under no_sync(), so its gradients were not averaged",
        "Leave no_sync() for the micro-batch right before the optimizer's step",
        _no_sync,
    ),
    Cause.REPEATED: _Case(
        "a second backward pass followed one call of the wrapper, and only the first one is averaged",
        "Add the losses up and call backward once, or call the wrapper before each backward pass",
        _backward,
    ),
    Cause.LATE: _Case(
        "it joined, or was unfrozen, after the model was wrapped, so its gradient is not averaged",
        "Wrap the model when all that is to learn is in it and requires grad, or wrap it anew",
        _wrapped,
    ),
    Cause.START: _Case(
        "its values differed before the first step",
        "Give every rank the same values: broadcast them from rank 0, or write them before the model is wrapped",
        _started,
    ),
    Cause.RATE: _Case(
        "the gradients are equal, but the ranks step with different learning rates",
        "Let every rank compute the same learning rate: average what the schedule depends on",
        _rated,
    ),
    Cause.CHANGED: _Case(
        "the gradients were averaged and are not equal at the step, so something changed them in between",
        "Change gradients on every rank alike: from averaged numbers, or with a generator seeded alike",
        _stepped,
    ),
    Cause.UNKNOWN: _Case(
        "the gradients differ at the step; whether they were averaged was not seen, since the wrapper is compiled",
        "See that the wrapper is called before each backward pass, and outside of no_sync() before the step",
        _backward,
    ),
    Cause.UPDATE: _Case(
        "the gradients are equal, but the updates are not",
        "Give the optimizers of all ranks the same state, and write to the weights on every rank alike",
        _stepped,
    ),
}
