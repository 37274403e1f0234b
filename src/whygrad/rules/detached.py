"""`gate.weight` (+1) got no gradient in 60 steps: `torch.tensor()` copies the value of a tensor, not its graph.

## What it looks for

Parameters that were to learn, whose path to the loss is cut by an operation that takes a value out of the graph:
`detach()`, `.data`, `.item()`, `.tolist()`, `numpy()`, `torch.tensor(x)`, `nn.Parameter(x)`, a copy, or a gradient that
`autograd.grad` returned without `create_graph=True`. And terms of the loss that are cut as a whole.

## Why it does not learn

Backward follows the operations that made the loss. A tensor that was detached, and a number, list or array that was
read from one, do not know what they were computed from: backward ends there. What was computed before it gets no
gradient on this way, `.grad` stays None, and the optimizer passes over it without a word. Nothing raises as long as
something else in the loss still requires grad.

## What it measures

In the traced steps, which parameters the value of the loss depends on, and where the graph forgot it; a value that left
torch and came back is followed by its memory or its identity, or, marked as inferred in the evidence, by the text of
the program; so is one that only decides which way the program goes (`for _ in range(int(depth))`). Over the whole run:
backward passes that reached the parameter (none), and steps at which it had a gradient (none).

A stop-gradient is everyday practice and never reported while another path brings the same parameter a gradient
(SimSiam, VQ-VAE, straight-through estimators, truncated backpropagation through time), where no optimizer holds what
lies behind it (a target network, a teacher), or where its value moves without an optimizer (a moving average). It is an
info for what runs in eval mode, or was loaded with `load_state_dict`, while the rest trains. Of several cuts on one
way, the nearest to the parameter is the one to look at.

A term of the loss that depends on parameters by value and is no longer in the graph (`loss + 0.1 * penalty.item()`)
changes what is printed and nothing else. It is a warning although its parameters learn by other terms, and an info if
the term was given a `detach()` of its own. A number that comes from an earlier step is no such term.

A program that ended with "Can't call numpy() on Tensor that requires grad" is reported too: the array would be cut off.

## Example

```python bad
import torch
from torch import nn

torch.manual_seed(0)
encoder, gate = nn.Linear(4, 8), nn.Linear(8, 1)
parameters = [*encoder.parameters(), *gate.parameters()]
optimizer = torch.optim.SGD(parameters, lr=0.1)

for _ in range(5):
    hidden = encoder(torch.randn(16, 4))
    penalty = gate(hidden).abs().mean()
    penalty = torch.tensor(penalty.item())  # detached
    loss = (hidden - 1).pow(2).mean() + penalty
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
```

## Fix

Stay in torch, and inside the graph: `torch.stack` or `torch.cat` in place of `torch.tensor`, the tensor itself in place
of its value or its `.data`. A copy for the log or for the next batch may be detached.

```python good
import torch
from torch import nn

torch.manual_seed(0)
encoder, gate = nn.Linear(4, 8), nn.Linear(8, 1)
parameters = [*encoder.parameters(), *gate.parameters()]
optimizer = torch.optim.SGD(parameters, lr=0.1)

for _ in range(5):
    hidden = encoder(torch.randn(16, 4))
    penalty = gate(hidden).abs().mean()
    loss = (hidden - 1).pow(2).mean() + penalty
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
```

## When it is fine

A part that is to stay as it is, and that the optimizer was given by a `model.parameters()`. Leave it out there, or call
`requires_grad_(False)` on it.

## See also

[no-grad-region](no-grad-region.md): computed while grad mode was off.
[nondifferentiable-op](nondifferentiable-op.md): an operation without a derivative.
[unreached-parameter](unreached-parameter.md): the result is not used.
"""

from __future__ import annotations

from collections.abc import Iterator

from whygrad.evidence import Evidence
from whygrad.model import Cut, CutKind, Finding, Place, Raised, Severity
from whygrad.rules._base import rule
from whygrad.rules._cuts import FOLLOWS, Case, cut_findings
from whygrad.rules._raised import raised_finding, raised_for, subject
from whygrad.rules._text import at

_SLUG = "detached"
_NUMPY = "numpy-of-requires-grad"
_KINDS = (
    *(CutKind.DETACH, CutKind.DATA, CutKind.VALUE, CutKind.COPY),
    *(CutKind.OVERWRITTEN, CutKind.FIRST_ORDER),
)
_FIXES = {
    CutKind.DETACH: "Take `detach()` out where the loss needs the gradient",
    CutKind.DATA: "Use the tensor itself in place of `.data`",
    CutKind.VALUE: "Keep it a tensor on the way to the loss, and read its value for the log only",
    CutKind.COPY: "Keep the tensor, or join several with `torch.stack` or `torch.cat`: both stay in the graph",
    CutKind.OVERWRITTEN: "Compute with the new tensor itself, or pass it through `torch.func.functional_call`",
    CutKind.FIRST_ORDER: "Pass create_graph=True to `autograd.grad`",
}
_WRITES = {"data=": ".data = ..."}
_NAMES = {
    **{name: f"torch.{name}" for name in ("tensor", "as_tensor", "asarray", "from_numpy", "full", "full_like")},
    "array": "numpy",
    "data": "copy.deepcopy",  # which reads it on the way
    "deepcopy": "copy.deepcopy",
    "requires_grad": "requires_grad_",
}


@rule(
    _SLUG,
    title="The path to the loss is cut by detach(), .data, a number, an array or a copy",
    severity=Severity.ERROR,
    since="0.1.0",
    explains=FOLLOWS,
)
def check(evidence: Evidence) -> Iterator[Finding]:
    """Yield one finding for each way, in each function, in which values leave the graph."""
    yield from cut_findings(evidence, Case(_SLUG, lambda cut: cut.kind in _KINDS, _line, _what, _fix))
    raised = raised_for(evidence, _NUMPY)
    if raised is not None:
        yield raised_finding(
            _SLUG,
            raised,
            raised.place,
            f"{subject(raised)}{_made(raised)} requires grad: `numpy()` would take it out of the graph, and raised",
            "Call `detach().numpy()` if it is for the log; stay in torch if the loss depends on it",
        )


def _line(cut: Cut) -> Place | None:
    return cut.place or cut.reentry


def _fix(cut: Cut) -> str:
    return _FIXES[CutKind.OVERWRITTEN if cut.operation in _WRITES else cut.kind]


def _what(cut: Cut) -> str:
    operation = cut.operation or cut.kind.value
    if cut.kind is CutKind.OVERWRITTEN or operation in _WRITES:
        return f"`{_WRITES.get(operation, _call(operation))}` writes the value over another tensor, past the graph"
    if cut.kind is CutKind.DETACH:
        return f"`{_call(operation)}` takes a tensor out of the graph"
    if cut.kind is CutKind.DATA:
        return "`.data` is the value without the graph"
    if cut.kind is CutKind.COPY:
        return f"`{_call(operation)}` copies the value of a tensor, not its graph"
    if cut.kind is CutKind.FIRST_ORDER:
        return f"`{_call(operation)}` without create_graph=True returns a gradient that has no graph"
    back = "" if cut.reentry is None or cut.reentry == cut.place else f", and comes back as a constant{at(cut.reentry)}"
    return f"`{_call(operation)}` takes the value out of torch{back}"


def _call(operation: str) -> str:
    return f"{_NAMES.get(operation, operation)}()"


def _made(raised: Raised) -> str:
    return f", made{at(raised.made_at)}," if raised.made_at is not None else ""
