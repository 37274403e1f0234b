"""`clip_grad_norm_` got no tensor in 80 of 80 calls: its iterator was used up, `l1.weight` (+5) trains unclipped.

## What it looks for

`model.parameters()`, `filter(...)` and `(p for p in ...)` hand out each parameter once. Whoever comes second gets
nothing, or what the first left.

## Why it does not learn

The optimizer goes through the iterator and keeps the tensors. `clip_grad_norm_`, called with the same iterator, goes
through it again, finds nothing, and clips nothing, in silence. The other way round, a loop that counts or prints the
parameters takes them away from the optimizer: a parameter group is then empty, or lacks the tensors that were looked
at.

## What it measures

- Calls of `clip_grad_norm_` that got no tensor from an iterator, in at least half of the calls of a line.
- Iterators that an optimizer was given at their end, or begun. Generators tell their state; what wraps one (`filter`,
  `map`, `chain`) is looked into without taking anything from it. It is a finding if parameters that learn are in no
  optimizer.

## Example

```python bad
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 1)
trainable = filter(lambda p: p.requires_grad, model.parameters())
optimizer = torch.optim.SGD(trainable, lr=0.1)

for _ in range(10):
    loss = (model(torch.randn(16, 4)) - 1).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(trainable, 1.0)  # exhausted-iterator
    optimizer.step()
```

## Fix

Keep a list.

```python good
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 1)
trainable = [p for p in model.parameters() if p.requires_grad]
optimizer = torch.optim.SGD(trainable, lr=0.1)

for _ in range(10):
    loss = (model(torch.randn(16, 4)) - 1).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(trainable, 1.0)
    optimizer.step()
```

## When it is fine

An iterator that was begun to leave its first parameters out on purpose: freeze these instead, with `requires_grad_`.

## See also

[not-in-optimizer](not-in-optimizer.md), [clip-misplaced](clip-misplaced.md).
"""

from __future__ import annotations

from collections.abc import Iterator

from whygrad.evidence import Evidence
from whygrad.model import Clip, Event, Finding, Parameter, Place, Severity
from whygrad.rules._base import rule
from whygrad.rules._loop import trained_by
from whygrad.rules._select import names
from whygrad.rules._text import counted, named

_SLUG = "exhausted-iterator"
_EVENT = "used_up_iterator"
_NOTHING = "nothing"
_EMPTY_LIST = "optimizer got an empty parameter list"  # how torch puts it


@rule(
    _SLUG,
    title="An iterator of parameters was used up before",
    severity=Severity.ERROR,
    since="0.1.0",
    explains=("not-in-optimizer", "exploding-gradient", "update-too-large", "nonfinite-gradient", "dead-relu"),
)
def check(evidence: Evidence) -> Iterator[Finding]:
    """Yield a finding for each line that clips nothing, and for each optimizer that got too little."""
    for clip in evidence.clips:
        if clip.used_up and 2 * clip.used_up >= clip.calls:
            yield _clips_nothing(evidence, clip)
    for event in evidence.events_of(_EVENT):
        yield from _optimizes_too_little(evidence, event)


def _clips_nothing(evidence: Evidence, clip: Clip) -> Finding:
    meant = [p for optimizer in evidence.optimizers if optimizer.steps for p in trained_by(evidence, optimizer)]
    made = [each.made_at for each in evidence.optimizers if each.made_at is not None]
    return Finding(
        rule=_SLUG,
        severity=Severity.ERROR,
        tensors=names(meant),
        place=clip.place,
        message=(
            f"`clip_grad_{clip.kind}_` got no tensor in {clip.used_up} of {counted(clip.calls, 'call')}: its iterator "
            f"was used up, {named(names(meant)) if meant else 'the model'} trains unclipped"
        ),
        fix="Make a list of the parameters, and give that to the optimizer and to the clipping",
        evidence={"calls": clip.calls, "empty_calls": clip.used_up, "limit": clip.limit},
        also=tuple(made),
    )


def _optimizes_too_little(evidence: Evidence, event: Event) -> Iterator[Finding]:
    nothing = event.detail.get("left") == _NOTHING
    raised = evidence.info.raised
    if nothing and raised is not None and _EMPTY_LIST in raised.message:
        yield _finding(event, evidence.parameters, event.place, f"it raised `{raised.type}`")
        return
    left_out = [p for p in evidence.parameters if not p.optimizers and p.requires_grad and (p.reached or not p.walked)]
    if left_out:
        yield _finding(event, left_out, event.place, f"{named(names(left_out))} is in no optimizer")


def _finding(event: Event, affected: tuple[Parameter, ...] | list[Parameter], place: Place | None, so: str) -> Finding:
    nothing = event.detail.get("left") == _NOTHING
    state = "was used up before" if nothing else "had been begun before"
    return Finding(
        rule=_SLUG,
        severity=Severity.ERROR,
        tensors=names(affected),
        place=place,
        message=f"The iterator of parameters that `{event.subject}` was given {state}: {so}",
        fix="Make a list of the parameters first, and go through that",
        evidence={"left": event.detail.get("left"), "group": event.detail.get("group")},
    )
