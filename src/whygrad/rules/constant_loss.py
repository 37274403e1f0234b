"""the loss depends on no parameter that is to learn: 0 of 30 backward passes reached `stem.weight` (+7).

## What it looks for

A loss that is no function of the parameters: backward runs, and nothing that is to learn is on the way; or the value of
the loss is the same number at every step, whatever the weights are.

## Why it does not learn

Backward visits what the loss was computed from. A constant that a branch returns (`torch.zeros((), requires_grad=True)`
where no sample is positive) is a leaf of its own: backward succeeds, fills the gradient of that constant, and no
parameter gets one. Without `requires_grad=True` it raises "does not require grad and does not have a grad_fn". So does
a loss of the targets alone, or of a model other than the one that is trained.

Terms that cancel (`a - b` where both compute the same number) are another case: gradients flow, as one of the factors
may be detached, weights move, and nothing is minimised.

## What it measures

Backward passes whose graph reached a parameter that an optimizer holds (none of at least three, or none before the
exception), where the parameters are not frozen and no cut was found on their way: otherwise another rule says which.
A loss that loses its gradient in the course of the run makes backward raise, and is reported where that happened.
The place is the line that made the constant, where the traced steps saw it or the source of the functions that made the
loss shows it, else that of the loss or of backward.

The value of the loss at every step: exactly equal over at least ten steps while gradients and updates are not zero and
large enough to change it. This is a warning where the loss is a difference, else an info: a policy gradient written as
a ratio, or a loss divided by its own detached value, is constant by construction and learns.

## Example

```python bad
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

for _ in range(5):
    score = model(torch.rand(16, 4))
    positive = torch.rand(16) < 0
    loss = torch.zeros((), requires_grad=True)  # constant-loss
    if positive.any():
        loss = score[positive].pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
```

## Fix

Find out why the branch is taken every time. Where a batch may have nothing to learn from, return a zero that belongs to
the graph, `0.0 * output.sum()`, or skip the step.

```python good
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

for _ in range(5):
    score = model(torch.rand(16, 4))
    positive = torch.rand(16) < 0.5
    loss = 0.0 * score.sum()
    if positive.any():
        loss = score[positive].pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
```

## When it is fine

A surrogate loss whose value means nothing and whose gradient is right.

## See also

[unreached-parameter](unreached-parameter.md): the loss misses a part of the model. [zero-gradient](zero-gradient.md):
gradients arrive, and are zero.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from whygrad.evidence import Evidence
from whygrad.model import Finding, Optimizer, Parameter, PathEnd, Place, Raised, Severity, Step
from whygrad.rules._base import rule
from whygrad.rules._events import place_in
from whygrad.rules._frozen import blocked_optimizers
from whygrad.rules._paths import is_without_gradient
from whygrad.rules._raised import GRAD_SWITCHES, NO_GRADIENT, raised_finding, raised_for, subject
from whygrad.rules._select import has_moved, held_by, names
from whygrad.rules._sizes import median
from whygrad.rules._text import at, counted, named, number, passes

_SLUG = "constant-loss"
_MIN_PASSES = 3
_MIN_STEPS = 10
_CONSTANT = "constant_loss"  # event: a backward pass that reached no parameter, at the line that made what it reached
_ROUNDING = 1e-6  # of the loss: a smaller change is lost in float32
_DISCONNECTED = (PathEnd.IGNORED, PathEnd.UNUSED)


@rule(
    _SLUG,
    title="The loss is no function of the parameters",
    severity=Severity.ERROR,
    since="0.1.0",
    explains=("unreached-parameter", "unused-parameter", "update-too-small"),
)
def check(evidence: Evidence) -> Iterator[Finding]:
    """Yield a finding for a loss that reaches nothing, or one for each optimizer whose loss never changes."""
    missed, raised = _missed(evidence), raised_for(evidence, NO_GRADIENT)
    if missed:
        yield _disconnected(evidence, missed)
        return
    if raised is not None and raised.operation not in GRAD_SWITCHES:
        yield from _turned(evidence, raised)
    for optimizer in evidence.optimizers:
        steps = [step for step in evidence.steps if step.optimizer == optimizer.id]
        if _is_constant(steps):
            yield _unchanging(evidence, optimizer, steps)


# -- a loss that reaches nothing ---------------------------------------------------------------------------------------


def _missed(evidence: Evidence) -> list[Parameter]:
    """Return what was to learn, if the loss reaches none of it and nothing else is known to be the reason."""
    info = evidence.info
    if raised_for(evidence, NO_GRADIENT) is None and (info.raised is not None or info.backwards < _MIN_PASSES):
        return []
    held = [p for p in evidence.parameters if (p.optimizers or not evidence.optimizers) and not p.stale]
    meant = [parameter for parameter in held if parameter.requires_grad]
    lost = [p for p in meant if p.path in _DISCONNECTED and is_without_gradient(p) and not has_moved(evidence, p)]
    elsewhere = any(p.reached and (p.registered or p.optimizers) for p in evidence.parameters)
    return lost if len(lost) == len(meant) and not elsewhere else []


def _disconnected(evidence: Evidence, missed: Sequence[Parameter]) -> Finding:
    raised, places = evidence.info.raised, _lines_of_loss(evidence)
    holders = [optimizer for optimizer in evidence.optimizers if any(optimizer.id in p.optimizers for p in missed)]
    who = named(names(missed))
    held = f", which `{holders[0].name}` holds" if holders else ""
    walked = max(parameter.walked for parameter in missed)
    seen = f"0 of {passes(walked)} reached {who}" if walked else f"backward raised, and {who} got no gradient"
    used = max(parameter.uses or 0 for parameter in missed)
    return Finding(
        rule=_SLUG,
        severity=Severity.ERROR,
        tensors=names(missed),
        place=places[0] if places else None,
        message=f"the loss depends on no parameter that is to learn: {seen}{held}",
        fix=(
            f"Compute the loss from what the model returns; what is made{at(places[0] if places else None)} does not "
            "depend on it"
        ),
        evidence={
            "backward_passes": evidence.info.backwards,
            "reached": 0,
            "parameters": len(missed),
            "uses": used,
            "raised": raised.type if raised is not None else "",
        },
        also=(*places[1:], *_last_uses(missed)),
    )


def _lines_of_loss(evidence: Evidence) -> list[Place]:
    """Return the lines that made the loss, nearest to the fault first."""
    raised = raised_for(evidence, NO_GRADIENT)
    constants = [event.place for event in evidence.events_of(_CONSTANT)]
    passes_run = [event.place for event in evidence.events_of("backward")]
    ends = [] if raised is None else [raised.made_at, raised.place]
    return list(dict.fromkeys(place for place in (*constants, *ends, *passes_run) if place is not None))


def _last_uses(missed: Sequence[Parameter]) -> tuple[Place, ...]:
    return tuple(dict.fromkeys(parameter.ends_at for parameter in missed if parameter.ends_at is not None))


def _turned(evidence: Evidence, raised: Raised) -> Iterator[Finding]:
    """Yield the finding about a loss that could be differentiated until the program raised."""
    learned = [p for p in evidence.parameters if p.optimizers and p.requires_grad and p.gradient_steps]
    if not learned or blocked_optimizers(evidence):
        return
    steps = counted(evidence.info.steps, "step")
    finding = raised_finding(
        _SLUG,
        raised,
        raised.made_at,
        f"after {steps} {subject(raised)} does not require grad any more: a branch made it of constants, or grad mode "
        "was switched off since",
        "Where a batch has nothing to learn from, skip it or return `0.0 * output.sum()`; see that grad mode is on",
    )
    yield replace(finding, tensors=names(learned))


# -- a loss that never changes -----------------------------------------------------------------------------------------


def _is_constant(steps: Sequence[Step]) -> bool:
    """Return whether the loss was one number at all steps, although the weights moved enough to change it."""
    losses = {step.loss for step in steps if step.loss is not None}
    recorded = [s for s in steps if s.gradient_l2 is not None and s.update_l2 is not None and s.loss is not None]
    if len(losses) != 1 or len(recorded) < _MIN_STEPS:
        return False
    expected = median([(s.gradient_l2 or 0.0) * (s.update_l2 or 0.0) for s in recorded])
    return expected > _ROUNDING * abs(losses.pop())


def _unchanging(evidence: Evidence, optimizer: Optimizer, steps: Sequence[Step]) -> Finding:
    loss = next(step.loss for step in steps if step.loss is not None)
    seen = f"{len(steps)} steps that were kept" if evidence.is_thinned else f"{len(steps)} steps"
    gradient = median([step.gradient_l2 for step in steps if step.gradient_l2 is not None])
    made = [event for event in evidence.events_of("backward") if event.place is not None]
    difference = any(str(event.detail.get("grad_fn", "")).startswith("Sub") for event in made)
    places = _lines_of_value(evidence)
    return Finding(
        rule=_SLUG,
        severity=Severity.WARNING if difference else Severity.INFO,
        tensors=names(held_by(evidence, optimizer)),
        place=places[0] if places else optimizer.stepped_at or optimizer.made_at,
        message=(
            f"the loss of `{optimizer.name}` is {number(loss)} at all {seen}, whatever the weights are, "
            f"while the gradient's norm is {number(gradient)}"
        ),
        fix=(
            "Its terms are equal and cancel: add them, or subtract what differs"
            if difference
            else "Compute the loss so that its value falls as the model gets better, if it is not meant as a surrogate"
        ),
        evidence={
            "loss": loss,
            "steps": optimizer.steps if evidence.is_thinned else len(steps),
            "gradient_l2": gradient,
            "difference": difference,
        },
        also=tuple(places[1:]),
    )


def _lines_of_value(evidence: Evidence) -> list[Place]:
    """Return the line that made the loss, if the traced steps saw it, and that of backward."""
    events = evidence.events_of("backward")
    made = [place_in(event, "made_at") for event in events]
    known = dict.fromkeys([*made, *(event.place for event in events)])
    return [place for place in known if place is not None]
