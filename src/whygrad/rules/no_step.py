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
reached, that line is the place; else it is the line that steps the learning rate scheduler in its place, the line that
calls backward, if there is just one, or the one that made the optimizer.

A step that does run may come so rarely that it might as well not: a guard that lets one batch in twenty pass. It is a
finding where ten passes or more were cleared without a step, at least 80% of all, and not in a regular pattern, which
is that of [zero-grad-misplaced](zero-grad-misplaced.md).

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
from whygrad.rules._loop import is_regular, lost_passes, trained_by, turns_of
from whygrad.rules._select import has_crashed, has_moved, held_by, is_stepped, names
from whygrad.rules._text import counted, named, passes

_SLUG = "no-step"
_MIN_PASSES = 3
_MIN_LOST = 10
_MOSTLY = 0.8  # of the passes


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
    for optimizer in evidence.optimizers:
        if optimizer.steps and not optimizer.skipped:
            yield from _rarely(evidence, optimizer)


def _finding(evidence: Evidence, optimizer: Optimizer, waiting: Sequence[Parameter]) -> Finding:
    reached = max(parameter.reached for parameter in waiting)
    calls = _unreached_calls(evidence, optimizer)
    instead = [optimizer.scheduler_stepped_at] if optimizer.scheduler_steps and optimizer.scheduler_stepped_at else []
    made = [optimizer.made_at] if optimizer.made_at is not None else []
    places = [*calls, *instead, *_only_backward(evidence), *made]
    later = any(other.steps for other in evidence.optimizers) and not optimizer.zero_grads and not calls
    step = f"`{optimizer.name}.step()`"
    also = f", and then that of `{optimizer.scheduler}`" if instead else ""
    return Finding(
        rule=_SLUG,
        severity=Severity.WARNING if later else Severity.ERROR,
        tensors=names(waiting),
        place=places[0] if places else None,
        message=(
            f"`{optimizer.name}` never stepped in {passes(evidence.info.backwards)}, at least {reached} of which "
            f"brought {named(names(waiting))} a gradient"
        ),
        fix=f"Make {step} reachable: its condition was never fulfilled"
        if calls
        else f"Call {step} after backward{also}",
        evidence={
            "steps": 0,
            "backward_passes": evidence.info.backwards,
            "reached": reached,
            "zero_grads": optimizer.zero_grads,
            "scheduler_steps": optimizer.scheduler_steps,
            "elements": sum(parameter.numel for parameter in waiting),
        },
        also=tuple(places[1:]),
    )


def _rarely(evidence: Evidence, optimizer: Optimizer) -> Iterator[Finding]:
    """Yield a finding if a guard clears most passes without a step."""
    turns = [turn for turn in turns_of(evidence, optimizer, unfinished=True) if not turn.round.closure]
    learning = {each.place for turn in turns if turn.stepped for each in turn.kept_passes()}
    found = ((turn, lost_passes(turn, used=True)) for turn in turns)
    lossy = [(turn, each) for turn, each in found if each is not None and each.first.place in learning]
    lost = sum(turn.count * each.passes for turn, each in lossy)
    ran = sum(turn.count * turn.own_passes() for turn in turns)
    if lost < _MIN_LOST or lost < _MOSTLY * ran or (len(lossy) > 1 and is_regular(lossy)):
        return
    held = trained_by(evidence, optimizer)
    lines = [place for place in (optimizer.stepped_at, lossy[0][1].clear.place) if place is not None]
    yield Finding(
        rule=_SLUG,
        severity=Severity.ERROR,
        tensors=names(held),
        place=lines[0] if lines else optimizer.made_at,
        message=(
            f"`{optimizer.name}` made only {counted(optimizer.steps, 'step')}: at least {lost} of {passes(ran)} into "
            f"{named(names(held)) if held else 'what it holds'} were cleared without one"
        ),
        fix=f"Loosen the condition of `{optimizer.name}.step()`: it is hardly ever fulfilled",
        evidence={"steps": optimizer.steps, "lost_passes": lost, "passes": ran, "zero_grads": optimizer.zero_grads},
        also=tuple(lines[1:]),
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
