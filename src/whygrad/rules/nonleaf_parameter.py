"""`images` is the output of `mul` at train.py:20, no leaf: its `.grad` stays None, and no optimizer can hold it.

## What it looks for

A tensor that was meant to learn and is the output of an operation: `torch.randn(3, requires_grad=True) * 0.1`,
`.view(...)`, `.to(device)` or `.float()` after `requires_grad=True`, arithmetic on an `nn.Parameter`.

## Why it does not learn

Gradients are stored in leaves, the tensors that no operation made. `torch.randn(3, requires_grad=True)` is a leaf;
times 0.1 it is a new tensor with a history, and the leaf behind it has no name any more. Its `.grad` stays None, an
update by hand finds nothing to use, and an optimizer refuses it: "can't optimize a non-leaf Tensor".

## What it measures

The optimizer's exception, with the tensor it refused and the operation that made it; or, in the traced steps, a tensor
made by an operation from a fresh leaf that nothing else holds, whose `.grad` is read as that of a parameter is.

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

from whygrad.evidence import Evidence
from whygrad.model import Finding, Parameter, PathEnd, Severity
from whygrad.rules._base import rule
from whygrad.rules._paths import numbers
from whygrad.rules._raised import raised_finding, raised_for, subject
from whygrad.rules._text import at, named

_SLUG = "nonleaf-parameter"
_REFUSED = "non-leaf-parameter"
_FIX = "Do the arithmetic first and mark the result: `(...).requires_grad_()`, or nn.Parameter(...) in a module"


@rule(
    _SLUG,
    title="What was meant as a parameter is the output of an operation",
    severity=Severity.ERROR,
    since="0.1.0",
    explains=("intermediate-grad", "unreached-parameter", "not-in-optimizer", "unregistered-parameter"),
)
def check(evidence: Evidence) -> Iterator[Finding]:
    """Yield a finding for the tensor that the optimizer refused, and for each that is no leaf."""
    raised = raised_for(evidence, _REFUSED)
    if raised is not None:
        made = f"{_operation(raised.operation)}{at(raised.made_at)}"
        message = f"{subject(raised)} is the output of {made}, no leaf: the optimizer cannot hold it"
        yield raised_finding(_SLUG, raised, raised.made_at, message, _FIX)
    for parameter in evidence.parameters:
        known = raised is not None and parameter.name == raised.tensor
        if parameter.path is PathEnd.NON_LEAF and not parameter.gradient_steps and not known:
            yield _finding(parameter)


def _finding(parameter: Parameter) -> Finding:
    return Finding(
        rule=_SLUG,
        severity=Severity.ERROR,
        tensors=(parameter.name,),
        place=parameter.ends_at or parameter.made_at,
        message=f"{named((parameter.name,))} is the output of {_operation(parameter.ends_with)}"
        f"{at(parameter.ends_at)}, no leaf: its `.grad` stays None",
        fix=_FIX,
        evidence={**numbers((parameter,)), "operation": parameter.ends_with},
        also=(parameter.used_at,) if parameter.used_at is not None else (),
    )


def _operation(name: str) -> str:
    return f"`{name}`" if name else "an operation"
