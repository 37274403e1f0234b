"""`fc.weight` (+1) has requires_grad=False: the optimizer holds nothing else, and backward finds nothing to compute.

## What it looks for

Parameters with `requires_grad=False` that an optimizer was given to train.

## Why it does not learn

Autograd computes no gradient for a tensor that does not require one, and the optimizer passes over it. If every
parameter in the path is frozen, the loss itself does not require grad, and backward raises "element 0 of tensors does
not require grad and does not have a grad_fn". The usual cause is a loop over the parameters of the whole model where
those of one part were meant, or a layer that was replaced before the loop and not after it.

## What it measures

For each optimizer, at each of its steps: how many of its parameters have `requires_grad=False`, and how many have a
gradient. It is an error where everything it holds is frozen, and backward raised or at least three steps were made, or
where an optimizer could not be made because a filter left nothing of a model that is frozen as a whole. It is an info
where part of it was frozen at every step and the rest learns: most programs mean that. What is frozen for good in
the first twentieth of 20 steps or more counts as frozen at every step. A frozen parameter that no optimizer holds is
none of this rule's business.

It is an error, too, where the program set an attribute that looks like `requires_grad` and is none, on a frozen
parameter (`weight.require_grad = True`) or on a module (`layer.requires_grad = True`; only the method
`requires_grad_()` reaches the parameters).

Freezing may also come and go: what is frozen while forward runs is not in the graph, though it requires grad again when
backward does. The traced steps show it.

## Example

```python bad
import torch
from torch import nn

torch.manual_seed(0)
body, head = nn.Linear(4, 8), nn.Linear(8, 1)
model = nn.Sequential(body, nn.ReLU(), head)
for parameter in model.parameters():
    parameter.requires_grad = False  # frozen-parameter
optimizer = torch.optim.SGD(head.parameters(), lr=0.1)

for _ in range(5):
    loss = model(torch.randn(16, 4)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
```

## Fix

Freeze the part that is to stay as it is, and only that.

```python good
import torch
from torch import nn

torch.manual_seed(0)
body, head = nn.Linear(4, 8), nn.Linear(8, 1)
model = nn.Sequential(body, nn.ReLU(), head)
for parameter in body.parameters():
    parameter.requires_grad = False
optimizer = torch.optim.SGD(head.parameters(), lr=0.1)

for _ in range(5):
    loss = model(torch.randn(16, 4)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
```

## When it is fine

A frozen backbone in an optimizer that was given the whole model: it costs a little memory and is reported as an info.

## See also

[unused-parameter](unused-parameter.md), [not-in-optimizer](not-in-optimizer.md).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from whygrad.evidence import Evidence
from whygrad.model import Cut, CutKind, Event, Finding, Parameter, Place, Severity
from whygrad.rules._base import rule
from whygrad.rules._cuts import Case, cut_findings
from whygrad.rules._frozen import blocked_optimizers, is_always_frozen
from whygrad.rules._raised import EMPTY_OPTIMIZER, NO_GRADIENT, raised_for
from whygrad.rules._select import by_line, names
from whygrad.rules._text import at, counted, named

_SLUG = "frozen-parameter"
_MERE = "mere_attribute"  # event: an attribute was set that looks like requires_grad
_FIX = "Switch requires_grad on before forward runs; backward comes too late"


@rule(
    _SLUG,
    title="What the optimizer is to train has requires_grad=False",
    severity=Severity.ERROR,
    since="0.1.0",
    explains=("unreached-parameter", "unused-parameter"),
)
def check(evidence: Evidence) -> Iterator[Finding]:
    """Yield one finding for each line that froze what an optimizer holds."""
    mistaken = [found for event in evidence.events_of(_MERE) if (found := _mere_attribute(evidence, event)) is not None]
    yield from mistaken
    if mistaken:
        return
    is_empty = raised_for(evidence, EMPTY_OPTIMIZER) is not None
    fatal = _of_frozen_models(evidence) if is_empty else _of_blocked_optimizers(evidence)
    known = {parameter.id for parameter in fatal}
    partial = [p for p in evidence.parameters if p.id not in known and is_always_frozen(p)]
    for severity, chosen in ((Severity.ERROR, fatal), (Severity.INFO, partial)):
        for place, group in by_line(chosen, lambda parameter: parameter.frozen_at or parameter.made_at):
            yield _finding(evidence, group, place, severity)
    yield from cut_findings(evidence, Case(_SLUG, _is_switched, lambda cut: cut.place, _what, lambda _: _FIX))


def _mere_attribute(evidence: Evidence, event: Event) -> Finding | None:
    """Return the finding about parameters that stay frozen because something else than `requires_grad` was set."""
    wanted = event.detail.get("parameters", ())
    group = [p for p in evidence.parameters if p.id in wanted and not p.requires_grad and not p.gradient_steps]
    if (
        not event.detail.get("value")
        or not group
        or any(p.requires_grad for p in evidence.parameters if p.id in wanted)
    ):
        return None
    setting = f"`{event.subject}.{event.detail['attribute']} = True`"
    places = (place for place in (event.place, group[0].frozen_at, group[0].made_at) if place is not None)
    return Finding(
        rule=_SLUG,
        severity=Severity.ERROR,
        tensors=names(group),
        place=next(places, None),
        message=f"{named(names(group))} {'has' if len(group) == 1 else 'have'} requires_grad=False: "
        f"{setting}{at(event.place)} sets an attribute that nothing reads",
        fix="Call `requires_grad_(True)` on it",
        evidence={"attribute": event.detail["attribute"], "elements": sum(p.numel for p in group)},
        also=tuple(dict.fromkeys(places)),
    )


def _is_switched(cut: Cut) -> bool:
    return cut.kind is CutKind.FROZEN


def _what(cut: Cut) -> str:
    return f"requires_grad was switched off{at(cut.place)} while forward used it"


def _of_frozen_models(evidence: Evidence) -> list[Parameter]:
    registered = [parameter for parameter in evidence.parameters if parameter.registered]
    alive = {parameter.root for parameter in registered if parameter.requires_grad}
    return [parameter for parameter in registered if parameter.root not in alive]


def _of_blocked_optimizers(evidence: Evidence) -> list[Parameter]:
    blocked = blocked_optimizers(evidence)
    return [p for p in evidence.parameters if not p.requires_grad and not blocked.isdisjoint(p.optimizers)]


def _finding(evidence: Evidence, group: Sequence[Parameter], place: Place | None, severity: Severity) -> Finding:
    steps = max(parameter.steps for parameter in group)
    raised = evidence.info.raised if severity is Severity.ERROR else None
    has = f"{named(names(group))} {'has' if len(group) == 1 else 'have'} requires_grad=False"
    frozen = max(parameter.frozen_steps for parameter in group)
    during = f" in {f'{frozen} of ' if frozen < steps else ''}{counted(steps, 'step')}" if steps else ""
    return Finding(
        rule=_SLUG,
        severity=severity,
        tensors=names(group),
        place=place,
        message=f"{has}{during}: {_what_follows(evidence, severity)}",
        fix=(
            "Freeze only the part that is to stay as it is"
            if severity is Severity.ERROR
            else "Give the optimizer only what is to learn"
        ),
        evidence={
            "steps": steps,
            "frozen_steps": max(parameter.frozen_steps for parameter in group),
            "elements": sum(parameter.numel for parameter in group),
        },
        also=(raised.place,) if raised is not None and raised.place is not None else (),
    )


def _what_follows(evidence: Evidence, severity: Severity) -> str:
    if severity is Severity.INFO:
        return "its optimizer holds it all the same"
    if raised_for(evidence, EMPTY_OPTIMIZER) is not None:
        return "nothing was left for the optimizer to hold"
    if raised_for(evidence, NO_GRADIENT) is not None:
        return "its optimizer holds nothing that can learn, and backward had nothing to compute"
    return "its optimizer holds nothing that can learn"
