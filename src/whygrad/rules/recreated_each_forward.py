"""`mix.weight` (+1) are made anew in `forward`, 200 times in this run: what they learn in a step is gone by the next.

## What it looks for

Layers and parameters that are made again for each pass, in `forward` or in the training loop.

## Why it does not learn

A new layer has new random weights. One that `forward` makes and drops is in no `parameters()`, so no optimizer can hold
it; one that `forward` puts on `self` replaces the layer that the optimizer holds. A model that the loop makes in front
of each step is stepped once and then thrown away. The loss may even fall: the layers around it learn to live with it.

## What it measures

Parameters by the line that made them. A line in a function is reported if it made the same parameter at least three
times, nothing registers it, no optimizer ever held it, and a backward pass reached each of them once. Any line is
reported if it made the same registered parameter at least four times and for at least half of all backward passes, and
none of them was reached by a second one. Parameters that were copied, or loaded with `load_state_dict`, carry on what
others have learned, and are left out.

The place is the line that makes them.

## Example

```python bad
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(4, 8)
        self.head = nn.Linear(8, 1)

    def forward(self, x):
        h = self.body(x).relu()
        self.head = nn.Linear(h.size(1), 1)  # recreated-each-forward
        return self.head(h)


torch.manual_seed(0)
model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(8):
    loss = (model(torch.randn(16, 4)) - 1).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
```

## Fix

Make it once, in `__init__`; where its size is only known later, use a lazy layer such as `nn.LazyLinear`.

```python good
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(4, 8)
        self.head = nn.Linear(8, 1)

    def forward(self, x):
        return self.head(self.body(x).relu())


torch.manual_seed(0)
model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(8):
    loss = (model(torch.randn(16, 4)) - 1).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
```

## When it is fine

A random projection that is drawn anew on purpose: give it `requires_grad_(False)`.

## See also

[unregistered-parameter](unregistered-parameter.md): kept, where `parameters()` does not look.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from whygrad.evidence import Evidence
from whygrad.model import Finding, Parameter, Place, Severity
from whygrad.rules._base import rule
from whygrad.rules._select import by_line, names
from whygrad.rules._source import assigned_name
from whygrad.rules._text import named

_SLUG = "recreated-each-forward"
_MIN_DROPPED = 3
_MIN_REGISTERED = 4
_MIN_SHARE = 0.5  # of the backward passes


@rule(
    _SLUG,
    title="Layers are made anew for each pass",
    severity=Severity.ERROR,
    since="0.1.0",
    explains=(
        *("not-in-optimizer", "stale-optimizer", "missing-zero-grad", "exploding-gradient", "update-too-small"),
        *("unused-parameter", "unreached-parameter", "no-step", "unregistered-parameter"),
    ),
)
def check(evidence: Evidence) -> Iterator[Finding]:
    """Yield one finding for each line that makes the same layer again and again."""
    if not any(optimizer.steps for optimizer in evidence.optimizers):
        return
    passing = [parameter for parameter in evidence.parameters if _is_passing(parameter)]
    for place, group in by_line(passing, lambda parameter: parameter.made_at):
        if place is None:
            continue
        generations = Counter(_label(parameter, place) for parameter in group)
        times = max(generations.values())
        registered = any(parameter.registered for parameter in group)
        if times >= (max(_MIN_REGISTERED, _MIN_SHARE * evidence.info.backwards) if registered else _MIN_DROPPED):
            yield _finding(evidence, place, group, tuple(generations), times)


def _is_passing(parameter: Parameter) -> bool:
    """Return whether a parameter was made, used in one pass, and dropped."""
    place = parameter.made_at
    if place is None or not parameter.requires_grad or parameter.reached != 1 or parameter.loaded:
        return False
    if parameter.registered:
        return parameter.copy_of is None and max(parameter.gradient_steps, parameter.steps) <= 1
    local = place.function not in ("", "<module>", "__init__")
    return local and parameter.held_in == "variable" and not parameter.optimizers


def _label(parameter: Parameter, place: Place) -> str:
    """Return the name under which the next one of its kind comes again."""
    if parameter.registered:
        return parameter.name
    layer = assigned_name(place)
    return ".".join(filter(None, (layer, parameter.attribute if parameter.attribute != layer else "")))


def _finding(
    evidence: Evidence, place: Place, group: Sequence[Parameter], tensors: tuple[str, ...], times: int
) -> Finding:
    where = f"in `{place.function}`" if place.function not in ("", "<module>") else "in the loop"
    replaced = [p for p in evidence.parameters if p.stale and p.optimizers and p.steps and p not in group]
    used = (parameter.used_at for parameter in group)
    return Finding(
        rule=_SLUG,
        severity=Severity.ERROR,
        tensors=tensors or names(group),
        place=place,
        message=(
            f"{named(tensors)} {'is' if len(tensors) == 1 else 'are'} made anew {where}, {times} times in this run: "
            f"what {'it learns' if len(tensors) == 1 else 'they learn'} in a step is gone by the next"
        ),
        fix="Make the layer once, in __init__, and keep it on `self`"
        if where != "in the loop"
        else "Make it once, in front of the loop",
        evidence={
            "made": times,
            "reached": len(group),
            "elements": sum(parameter.numel for parameter in group),
            "replaced": len(replaced),
        },
        also=tuple(dict.fromkeys(p for p in used if p is not None and p != place))[:3],
    )
