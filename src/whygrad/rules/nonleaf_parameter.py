"""`images` is the output of `mul` at train.py:20, no leaf: its `.grad` stays None, and no optimizer can hold it.

## What it looks for

A tensor that was meant to learn and is the output of an operation: `torch.randn(3, requires_grad=True) * 0.1`,
`.view(...)`, `.to(device)` or `.float()` after `requires_grad=True`, arithmetic on an `nn.Parameter`.

## Why it does not learn

Gradients are stored in leaves, the tensors that no operation made. `torch.randn(3, requires_grad=True)` is a leaf;
times 0.1 it is a new tensor with a history, and the leaf behind it has no name any more. Its `.grad` stays None, an
update by hand finds nothing to use, and an optimizer refuses it: "can't optimize a non-leaf Tensor".

## What it measures

The optimizer's exception, with the tensor it refused and the operation that made it. Or a leaf that backward reached at
least twice and that nothing holds, where the line that made it computes on: `nn.Parameter(torch.ones(4)) * 0.5`. Or a
tensor made by such a line, `torch.zeros(3, requires_grad=True).double()`, whose `.grad` is read and is None.

## Example

```python bad
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 1)
code = torch.randn(16, 4, requires_grad=True) * 0.1  # nonleaf-parameter
optimizer = torch.optim.SGD([code], lr=0.1)

for _ in range(5):
    loss = (model(code) - 1).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
```

## Fix

Do the arithmetic first, and mark the result.

```python good
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 1)
code = (torch.randn(16, 4) * 0.1).requires_grad_()
optimizer = torch.optim.SGD([code], lr=0.1)

for _ in range(5):
    loss = (model(code) - 1).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
```

In a module, `nn.Parameter(torch.randn(3) * 0.1)` does the same. A parameter moves to another device with
`model.to(device)`, which keeps it a leaf; do that before the optimizer is made.

## When it is fine

Weights that another network computes, or that a parametrization makes from a leaf: there the leaf learns.

## See also

[intermediate-grad](intermediate-grad.md): `.grad` of an intermediate is read.
[unreached-parameter](unreached-parameter.md): the loss does not depend on it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from whygrad.evidence import Evidence
from whygrad.model import Event, Finding, Parameter, PathEnd, Place, Severity
from whygrad.rules._base import rule
from whygrad.rules._events import place_in
from whygrad.rules._paths import numbers
from whygrad.rules._raised import raised_finding, raised_for, subject
from whygrad.rules._source import assigned_name, buries_a_leaf
from whygrad.rules._text import at, named, passes

_SLUG = "nonleaf-parameter"
_REFUSED = "non-leaf-parameter"
_READ = "intermediate_grad_read"
_MIN_REACHED = 2  # once: a leaf that is made anew in each step
_FIX = "Do the arithmetic first and mark the result: `(...).requires_grad_()`, or nn.Parameter(...) in a module"


@rule(
    _SLUG,
    title="What was meant as a parameter is the output of an operation",
    severity=Severity.ERROR,
    since="0.1.0",
    explains=("intermediate-grad", "unreached-parameter", "graph-freed"),
)
def check(evidence: Evidence) -> Iterator[Finding]:
    """Yield a finding for the tensor that the optimizer refused, and for each that hides a leaf."""
    raised = raised_for(evidence, _REFUSED)
    if raised is not None:
        made = f"{_operation(raised.operation)}{at(raised.made_at)}"
        message = f"{subject(raised)} is the output of {made}, no leaf: the optimizer cannot hold it"
        yield raised_finding(_SLUG, raised, raised.made_at, message, _FIX)
    yield from (_kept(parameter) for parameter in evidence.parameters if _is_kept(parameter))
    yield from (_buried(parameter) for parameter in evidence.parameters if is_buried(parameter))
    yield from (_read(event) for event in evidence.events_of(_READ) if _is_read_in_vain(event))


def _is_kept(parameter: Parameter) -> bool:
    return parameter.path is PathEnd.NON_LEAF and not parameter.gradient_steps


def is_buried(parameter: Parameter) -> bool:
    """Return whether nothing holds a leaf but the tensor that was computed from it in the line that made it."""
    loose = parameter.held_in == "variable" and not parameter.attribute and not parameter.optimizers
    return loose and parameter.reached >= _MIN_REACHED and buries_a_leaf(parameter.made_at)


def _is_read_in_vain(event: Event) -> bool:
    return buries_a_leaf(place_in(event, "made_at")) and not event.detail.get("retains_grad", False)


def _kept(parameter: Parameter) -> Finding:
    what = f"the output of {_operation(parameter.ends_with)}{at(parameter.ends_at)}"
    places = (parameter.ends_at or parameter.made_at, parameter.used_at)
    evidence = {**numbers((parameter,)), "operation": parameter.ends_with}
    return _finding(parameter.name, f"is {what}, no leaf: its `.grad` stays None", places, evidence)


def _buried(parameter: Parameter) -> Finding:
    seen = f"{parameter.reached} of {passes(parameter.walked)}"
    what = (
        f"is computed{at(parameter.made_at)} from a leaf that nothing else holds: the leaf gets the gradient in {seen}"
    )
    return _finding(assigned_name(parameter.made_at), what, (parameter.made_at,), dict(numbers((parameter,))))


def _read(event: Event) -> Finding:
    made = place_in(event, "made_at")
    what = f"is computed{at(made)} from a leaf that nothing else holds: its own `.grad` stays None"
    evidence = {"reads": event.count, "shape": event.detail.get("shape")}
    finding = _finding(event.subject, what, (made, event.place), evidence)
    return replace(finding, tensors=tuple(event.detail.get("names", ())) or finding.tensors)


def _finding(name: str, what: str, places: tuple[Place | None, ...], evidence: dict[str, object]) -> Finding:
    known = tuple(place for place in places if place is not None)
    return Finding(
        rule=_SLUG,
        severity=Severity.ERROR,
        tensors=(name,) if name else (),
        place=known[0] if known else None,
        message=f"{named((name,)) if name else 'a tensor'} {what}",
        fix=_FIX,
        evidence=evidence,
        also=known[1:],
    )


def _operation(name: str) -> str:
    return f"`{name}`" if name else "an operation"
