"""`encoder.weight` (+1) got no gradient in 100 steps: `Round`, called at train.py:21, passes nothing on in backward.

## What it looks for

Parameters that were to learn, behind an `autograd.Function` whose `backward` gives them no gradient, or only zeros; and
modules with a method `backward`, which nothing calls.

## Why it does not learn

A custom `autograd.Function` replaces what autograd would do: what its `backward` returns is the gradient, right or not.
It has to return one value per argument of `forward`, in their order. `None` in place of a tensor ends the path, and the
parameter's `.grad` stays None; zeros reach it and change nothing. Arguments that went in as `x.detach()`, or through
`ctx` only, are no arguments for autograd.

Only `autograd.Function` works like this. A method `backward` of an `nn.Module` is an ordinary method: autograd
differentiates `forward` and never looks at it, so a gradient that it should scale, reverse or clip passes unchanged.

## What it measures

In the traced steps: calls of `autograd.Function` on the way from a parameter to the loss, and the gradient that came
back. Over the whole run: no step at which the parameter had a gradient, or one that was exactly zero in every recorded
step (of at least three). That the numbers of a gradient are wrong is not measured, and may be meant (a gradient
reversal): `torch.autograd.gradcheck` tells.

The place is the line where `backward` returns, or the call where several lines do.

For modules: the class defines `backward` with an argument for the gradient, it was called in forward, and
the program's gradients come from autograd. It is a warning, or an error where what was called before the module gets no
gradient but zeros: a sign or a rounding whose gradient the method was to pass on.

## Example

```python bad
import torch
from torch import nn


class Round(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.round()

    @staticmethod
    def backward(ctx, grad):
        return None  # custom-backward


torch.manual_seed(0)
encoder, head = nn.Linear(4, 8), nn.Linear(8, 1)
parameters = [*encoder.parameters(), *head.parameters()]
optimizer = torch.optim.SGD(parameters, lr=0.1)
for _ in range(5):
    code = Round.apply(encoder(torch.randn(16, 4)))
    loss = (head(code) - 1).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
```

## Fix

Return the gradient of each argument, in the order of `forward`, and test it with `torch.autograd.gradcheck`.

```python good
import torch
from torch import nn


class Round(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.round()

    @staticmethod
    def backward(ctx, grad):
        return grad


torch.manual_seed(0)
encoder, head = nn.Linear(4, 8), nn.Linear(8, 1)
parameters = [*encoder.parameters(), *head.parameters()]
optimizer = torch.optim.SGD(parameters, lr=0.1)
for _ in range(5):
    code = Round.apply(encoder(torch.randn(16, 4)))
    loss = (head(code) - 1).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
```

## When it is fine

`None` for an argument that needs no gradient. A function that stops the gradient on purpose, in front of a part that no
optimizer holds. A module whose `backward` the program calls by itself.

## See also

[detached](detached.md): cut by an operation of PyTorch. [zero-gradient](zero-gradient.md): zeros from elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator

from whygrad.evidence import Evidence
from whygrad.model import Cut, CutKind, Event, Finding, Module, Parameter, Place, Severity
from whygrad.rules._base import rule
from whygrad.rules._cuts import FOLLOWS, Case, cut_findings, is_checkpoint
from whygrad.rules._paths import is_without_gradient, is_zero
from whygrad.rules._select import names
from whygrad.rules._text import at

_SLUG = "custom-backward"
_OF_MODULE = "module_backward"  # event: a module that ran has a method of that name
_FIX = "Return the gradient of every argument of forward, in their order, and test it with torch.autograd.gradcheck"


@rule(
    _SLUG,
    title="A backward written by hand gives no gradient",
    severity=Severity.ERROR,
    since="0.1.0",
    explains=(*FOLLOWS, "nondifferentiable-op"),
)
def check(evidence: Evidence) -> Iterator[Finding]:
    """Yield one finding for each function that returns no gradient, and for each method that is never called."""
    yield from cut_findings(evidence, Case(_SLUG, _is_mine, _line, _what, lambda _: _FIX))
    yield from (_method(evidence, event) for event in _methods(evidence))


def _is_mine(cut: Cut) -> bool:
    return cut.kind is CutKind.CUSTOM and not is_checkpoint(cut)


def _line(cut: Cut) -> Place | None:
    return cut.mode_at or cut.place


def _what(cut: Cut) -> str:
    function = f"`{cut.operation}`" if cut.operation else "an autograd.Function"
    return f"{function}, called{at(cut.place)}, passes nothing on in its backward{at(cut.mode_at)}"


def _methods(evidence: Evidence) -> list[Event]:
    return [] if not evidence.info.backwards else list(evidence.events_of(_OF_MODULE))


def _method(evidence: Evidence, event: Event) -> Finding:
    module = next((m for m in evidence.modules if event.subject in (m.name, f"{m.root}.{m.name}")), None)
    before = _called_before(evidence, module)
    what = f"`{module.type}`" if module is not None else f"`{event.subject}`"
    return Finding(
        rule=_SLUG,
        severity=Severity.ERROR if before and all(_is_deprived(evidence, p) for p in before) else Severity.WARNING,
        tensors=tuple(event.detail.get("tensors", ())) or names(before),
        place=event.place,
        message=f"`{event.subject}` is an nn.Module: its `backward`{at(event.place)} is never called, and the gradient "
        "passes as forward alone defines it",
        fix=f"Make {what} a torch.autograd.Function, or change the gradient with `Tensor.register_hook`",
        evidence={"calls": 0 if module is None else module.calls, "backward_passes": evidence.info.backwards},
        also=(module.made_at,) if module is not None and module.made_at is not None else (),
    )


def _is_deprived(evidence: Evidence, parameter: Parameter) -> bool:
    """Return whether a parameter gets nothing to learn from."""
    return is_without_gradient(parameter) or is_zero(evidence, parameter)


def _called_before(evidence: Evidence, module: Module | None) -> list[Parameter]:
    """Return the parameters that a gradient reaches after it passed a module, as far as the order of calls tells."""
    if module is None or module.order is None:
        return []
    model = [p for p in evidence.parameters_in_order if p.root == module.root and p.reached]
    return [p for p in model if p.order is not None and p.order < module.order]
