"""every sample that enters `features.0` is the same at all 100 looks: the model can only learn one output.

## What it looks for

Batches of which all samples are equal when they enter the model, or the first layer that is to learn.

## Why it does not learn

What is the same for all samples tells nothing about any of them. The output is the same for all, and the best it can
become is the mean of the targets. Where the samples are all zeros, the weights of the first layer get no gradient
either. It happens in preprocessing: a cast to integers of images that were scaled to 0..1, a normalisation over the
wrong dimension, a dataset that ignores its index, a mask or a clip that leaves one value.

## What it measures

In recorded steps, every tensor without a gradient that enters a root model, or a module with parameters that learn: are
all samples (entries of dimension 0) of the batch equal? It is reported when a batch of at least two samples was equal
at each of at least three looks, for everything that enters the layers which learn. One varying input is enough for
silence: segment ids, position ids, a time step and a start state may well be constant. It is an error where the samples
are zeros. A single constant of ones, one sample that is expanded over the batch without a copy, and a batch of one are
taken for what they say. In 47 programs that train, no model was fed constants only.

The place is the line behind which the samples are equal: traced steps remember which line made each tensor, from what.

## Example

```python bad
import torch
from torch import nn

torch.manual_seed(0)
features = torch.rand(256, 8)
labels = (features[:, 0] > 0.5).float()
inputs = features.to(torch.uint8).float()  # constant-input
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for batch in torch.arange(256).split(32):
    loss = nn.functional.binary_cross_entropy_with_logits(model(inputs[batch]).squeeze(1), labels[batch])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
```

## Fix

Keep what tells the samples apart: cast before scaling, and look at one batch before training.

```python good
import torch
from torch import nn

torch.manual_seed(0)
features = torch.rand(256, 8)
labels = (features[:, 0] > 0.5).float()
inputs = features.float()
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for batch in torch.arange(256).split(32):
    loss = nn.functional.binary_cross_entropy_with_logits(model(inputs[batch]).squeeze(1), labels[batch])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
```

## When it is fine

A policy without a state, a prior fitted to one image: then give the model one sample, or expand it.

## See also

[zero-gradient](zero-gradient.md), [unscaled-data](unscaled-data.md).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from whygrad.evidence import Evidence
from whygrad.model import Feed, Finding, Place, Severity
from whygrad.rules._base import rule
from whygrad.rules._feeds import feeds_by_root, learning
from whygrad.rules._select import names
from whygrad.rules._text import counted, number

_SLUG = "constant-input"
_MIN_LOOKS = 3


@rule(
    _SLUG,
    title="All samples are equal when they enter the model",
    severity=Severity.ERROR,
    since="0.1.0",
    explains=(
        "zero-gradient",
        "vanishing-gradient",
        "dead-relu",
        "symmetric-init",
        "saturated-activation",
        "unscaled-data",
        "update-too-small",
        "decay-dominates",
    ),
)
def check(evidence: Evidence) -> Iterator[Finding]:
    """Yield a finding for each model of which all inputs are constant."""
    for root, feeds in feeds_by_root(evidence).items():
        layers = [feed for feed in feeds if feed.kind == "layer"]
        entering = [feed for feed in (layers or feeds) if feed.looks]
        parameters = learning(evidence, root)
        if parameters and entering and all(map(_is_constant, entering)) and not all(map(_is_meant, entering)):
            yield _finding(evidence, root, entering, feeds)


def _is_constant(feed: Feed) -> bool:
    return feed.looks >= _MIN_LOOKS and feed.constant_looks == feed.looks


def _is_meant(feed: Feed) -> bool:
    """Return whether a constant says of itself that it is one: expanded, or ones only."""
    return feed.expanded or feed.low == feed.high == 1


def _finding(evidence: Evidence, root: str, entering: Sequence[Feed], feeds: Sequence[Feed]) -> Finding:
    first = next(feed for feed in entering if not _is_meant(feed))
    zeros = all(feed.low == feed.high == 0 for feed in entering)
    place = _place(first, feeds)
    taken = first.name.partition("[")[0]
    who = f"`{taken}`" if taken else f"`{root or 'the model'}`"
    what = "zeros" if zeros else f"the same, between {number(first.low)} and {number(first.high)},"
    return Finding(
        rule=_SLUG,
        severity=Severity.ERROR if zeros else Severity.WARNING,
        tensors=names(learning(evidence, root)),
        place=place,
        message=f"every sample that enters {who} is {what} at all {counted(first.looks, 'look')}: the model can only "
        "learn one output",
        fix="Keep what tells the samples apart: look for a cast to integers, a normalisation over the wrong dimension, "
        "or a dataset that ignores its index",
        evidence={
            "looks": first.looks,
            "samples": first.shape[0],
            "low": first.low,
            "high": first.high,
            "inputs": len(entering),
        },
        also=() if first.taken_at is None or first.taken_at == place else (first.taken_at,),
    )


def _place(first: Feed, feeds: Sequence[Feed]) -> Place | None:
    """Return the line behind which the samples are equal; where it was not seen, the line that calls the model."""
    called = next((feed.taken_at for feed in feeds if feed.kind == "model"), None)
    return first.made_at or called or first.taken_at
