"""`h`, made by `tanh` at train.py:19, was changed in place by `div_` at train.py:21: backward needed its old value.

## What it looks for

A write in place that autograd refuses: backward ended with "one of the variables needed for gradient computation has
been modified by an inplace operation", or the write itself with "a leaf Variable that requires grad is being used in an
in-place operation".

## Why it does not learn

Many derivatives are computed from values of forward: that of `tanh` from its result, that of a product from both
factors. Autograd keeps these tensors, not copies, with the number of their version. `h /= 2`, `x[mask] = 0`, `relu_`,
or a weight that an optimizer updates between forward and backward raise that number, and backward, which would compute
a wrong gradient, raises instead. A leaf that requires grad cannot be written in place at all while grad mode is on: the
write would make it the output of an operation.

## What it measures

The exception; the tensor it is about, with the line that made it; and the last write to it before backward, as the
traced steps saw it.

## Example

```python bad
import torch
from torch import nn

torch.manual_seed(0)
body, head = nn.Linear(4, 8), nn.Linear(8, 1)
parameters = [*body.parameters(), *head.parameters()]
optimizer = torch.optim.SGD(parameters, lr=0.1)

for _ in range(5):
    hidden = torch.tanh(body(torch.randn(16, 4)))
    hidden /= 2  # overwritten-inplace
    loss = (head(hidden) - 1).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
```

## Fix

Make a new tensor: `h = h / 2`, `torch.where(mask, 0, x)`, `relu`. Initial values and updates of a parameter are written
under `torch.no_grad()`. An optimizer steps after the last backward that needs its weights.

```python good
import torch
from torch import nn

torch.manual_seed(0)
body, head = nn.Linear(4, 8), nn.Linear(8, 1)
parameters = [*body.parameters(), *head.parameters()]
optimizer = torch.optim.SGD(parameters, lr=0.1)

for _ in range(5):
    hidden = torch.tanh(body(torch.randn(16, 4)))
    hidden = hidden / 2
    loss = (head(hidden) - 1).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
```

## When it is fine

Writes in place that raise nothing: autograd checks every one of them.

## See also

[graph-freed](graph-freed.md): backward runs twice. [detached](detached.md): a value written over another through
`.data`.
"""

from __future__ import annotations

from collections.abc import Iterator

from whygrad.evidence import Evidence
from whygrad.model import Finding, Raised, Severity
from whygrad.rules._base import rule
from whygrad.rules._raised import raised_finding, raised_for, subject
from whygrad.rules._text import at

_SLUG = "overwritten-inplace"
_MODIFIED = "modified-inplace"
_LEAF = "inplace-on-leaf"


@rule(
    _SLUG,
    title="A write in place changes what backward needs",
    severity=Severity.ERROR,
    since="0.1.0",
)
def check(evidence: Evidence) -> Iterator[Finding]:
    """Yield the finding about the write that ended the program."""
    modified, leaf = raised_for(evidence, _MODIFIED), raised_for(evidence, _LEAF)
    if modified is not None:
        yield _modified(modified, is_leaf=any(p.name == modified.tensor for p in evidence.parameters))
    if leaf is not None:
        yield _leaf(leaf)


def _modified(raised: Raised, *, is_leaf: bool) -> Finding:
    made = f", {'used' if is_leaf else 'made'}{at(raised.made_at)}," if raised.made_at is not None else ""
    by = f" by `{raised.operation}`" if raised.operation else ""
    if "step" in raised.operation:
        fix = "Call backward on every loss that needs the old weights before the optimizer steps"
    else:
        fix = f"Write to a new tensor{at(raised.changed_at)}, not in place"
    what = f"{subject(raised)}{made} was changed in place{by}{at(raised.changed_at)} before backward"
    return raised_finding(_SLUG, raised, raised.changed_at, f"{what}{at(raised.place)} used its old value", fix)


def _leaf(raised: Raised) -> Finding:
    what = f"{subject(raised)} is a leaf that requires grad, and was written in place"
    message = f"{what}{at(raised.place)} while grad mode was on"
    return raised_finding(_SLUG, raised, raised.place, message, "Write it under `with torch.no_grad():`")
