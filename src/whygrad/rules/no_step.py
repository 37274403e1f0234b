"""`optimizer` never stepped in 200 backward passes, at least 200 of which brought `head.weight` (+1) a gradient.

## What it looks for

An optimizer whose `step()` never runs although what it holds gets gradients.

## Why it does not learn

`loss.backward()` computes gradients and changes no weight; `optimizer.step()` does. In a loop with several optimizers
one `step()` is easily left out. It can also stand in the text and never be reached: behind a guard on the gradient norm
that is never fulfilled, or inside `if (i + 1) % accumulate == 0` in a loop that is too short.

## What it measures

For each optimizer: steps (none), backward passes whose graph reached its parameters (at least three), and whether these
changed in another way (another optimizer that steps holds them, an update by hand: then it is silent). Steps that a
`GradScaler` skipped count as tried; another rule speaks of them. Where `step()` stands in the text and was never
reached, that line is the place; else it is the line that calls backward, if there is just one, or the one that made the
optimizer.

It is a warning where other optimizers step and `zero_grad()` of this one was never called: it may be waiting for a
later phase. A program that raised is not judged.

## Example

```python bad
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

for _ in range(5):
    loss = (model(torch.randn(16, 4)) - 1).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()  # no-step
```

## Fix

Call `optimizer.step()` after backward, or make its condition reachable.

```python good
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

for _ in range(5):
    loss = (model(torch.randn(16, 4)) - 1).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
```

## When it is fine

An optimizer for a phase that this run did not get to. A loop that only collects gradients: make no optimizer for it.

## See also

[no-backward](no-backward.md): a step without backward. [not-in-optimizer](not-in-optimizer.md).
[zero-learning-rate](zero-learning-rate.md): steps that change nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from whygrad.evidence import Evidence
from whygrad.model import Finding, Optimizer, Parameter, Place, Severity
from whygrad.rules._base import rule
from whygrad.rules._select import has_crashed, has_moved, held_by, is_stepped, names
from whygrad.rules._text import named, passes

_SLUG = "no-step"
_MIN_PASSES = 3


@rule(
    _SLUG,
    title="An optimizer never steps",
    severity=Severity.ERROR,
    since="0.1.0",
    explains=("not-in-optimizer", "missing-zero-grad", "exploding-gradient", "update-too-small"),
)
def check(evidence: Evidence) -> Iterator[Finding]:
    """Yield a finding for each optimizer that never stepped."""
    if has_crashed(evidence):
        return
    for optimizer in evidence.optimizers:
        if optimizer.steps or optimizer.skipped:
            continue
        held = held_by(evidence, optimizer)
        waiting = [p for p in held if p.reached >= _MIN_PASSES and p.requires_grad and not is_stepped(evidence, p)]
        if waiting and not any(has_moved(evidence, parameter) for parameter in held):
            yield _finding(evidence, optimizer, waiting)


def _finding(evidence: Evidence, optimizer: Optimizer, waiting: Sequence[Parameter]) -> Finding:
    reached = max(parameter.reached for parameter in waiting)
    calls = _unreached_calls(evidence, optimizer)
    places = [*calls, *_only_backward(evidence), *([optimizer.made_at] if optimizer.made_at is not None else [])]
    later = any(other.steps for other in evidence.optimizers) and not optimizer.zero_grads and not calls
    step = f"`{optimizer.name}.step()`"
    return Finding(
        rule=_SLUG,
        severity=Severity.WARNING if later else Severity.ERROR,
        tensors=names(waiting),
        place=places[0] if places else None,
        message=(
            f"`{optimizer.name}` never stepped in {passes(evidence.info.backwards)}, at least {reached} of which "
            f"brought {named(names(waiting))} a gradient"
        ),
        fix=f"Make {step} reachable: its condition was never fulfilled" if calls else f"Call {step} after backward",
        evidence={
            "steps": 0,
            "backward_passes": evidence.info.backwards,
            "reached": reached,
            "zero_grads": optimizer.zero_grads,
            "elements": sum(parameter.numel for parameter in waiting),
        },
        also=tuple(places[1:]),
    )


def _unreached_calls(evidence: Evidence, optimizer: Optimizer) -> list[Place]:
    """Return the lines of the program's text that step this optimizer and never ran."""
    events = (event for event in evidence.events_of("unreached_step_call") if event.subject == optimizer.name)
    return [event.place for event in events if event.place is not None]


def _only_backward(evidence: Evidence) -> list[Place]:
    """Return the line that calls backward, if there is one and no more: of several, any may be meant."""
    places = [event.place for event in evidence.events_of("backward") if event.place is not None]
    lines = {(place.file, place.line) for place in places}
    return places[:1] if len(lines) == 1 else []
