"""`optimizer` stepped 200 times, but backward was never called: no parameter had a gradient.

## What it looks for

A training loop in which nothing computes gradients.

## Why it does not learn

`optimizer.step()` reads `.grad` of its parameters. Only `loss.backward()` writes it (or `torch.autograd.grad`, whose
result the program has to store itself). Without it every `.grad` stays None, the optimizer passes over each parameter,
and the loop runs to its end without an error.

## What it measures

Calls of backward (none), of `torch.autograd.grad` (none, or at least one per step), and steps at which any parameter
had a gradient (none), against at least three optimizer steps; an optimizer that moves weights without gradients is left
alone. A loop that makes no step either is reported where `zero_grad()` was called: at least three forward passes of a
model in training mode, and no backward. A program that raised is not judged: it had no time to.

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
    optimizer.step()  # no-backward
```

## Fix

Call `loss.backward()` between `zero_grad()` and `step()`.

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

An optimizer of your own that needs no gradients, such as an evolution strategy: its weights move, and the rule is
silent.

## See also

[no-step](no-step.md): backward without a step.
"""

from __future__ import annotations

from collections.abc import Iterator

from whygrad.evidence import Evidence
from whygrad.model import Finding, Optimizer, Severity
from whygrad.rules._base import rule
from whygrad.rules._select import has_crashed, has_moved, held_by, names
from whygrad.rules._text import counted

_SLUG = "no-backward"
_MIN_STEPS = 3
_MIN_FORWARDS = 3


@rule(
    _SLUG,
    title="Backward is never called",
    severity=Severity.ERROR,
    since="0.1.0",
    explains=(
        "unused-parameter",
        "unreached-parameter",
        "zero-gradient",
        "update-too-small",
        "constant-loss",
        "no-step",
    ),
)
def check(evidence: Evidence) -> Iterator[Finding]:
    """Yield a finding for each optimizer that waits for gradients that nothing computes."""
    if has_crashed(evidence) or _has_gradients(evidence):
        return
    for optimizer in evidence.optimizers:
        if optimizer.steps >= _MIN_STEPS:
            if not 0 < evidence.info.grad_calls < optimizer.steps and not _moves(evidence, optimizer):
                yield _finding(evidence, optimizer)
        elif not evidence.info.grad_calls and _is_idle_training(evidence, optimizer):
            yield _finding(evidence, optimizer)


def _has_gradients(evidence: Evidence) -> bool:
    return bool(evidence.info.backwards or any(p.gradient_steps for p in evidence.parameters))


def _moves(evidence: Evidence, optimizer: Optimizer) -> bool:
    return any(has_moved(evidence, parameter) for parameter in held_by(evidence, optimizer))


def _is_idle_training(evidence: Evidence, optimizer: Optimizer) -> bool:
    trains = any(module.training for module in evidence.modules)
    return optimizer.zero_grads > 0 and trains and evidence.info.forwards >= _MIN_FORWARDS


def _finding(evidence: Evidence, optimizer: Optimizer) -> Finding:
    calls = evidence.info.grad_calls
    lost = "; `autograd.grad` returns gradients and leaves `.grad` alone" if calls else ""
    done = f"stepped {counted(optimizer.steps, 'time')}" if optimizer.steps else "never stepped"
    return Finding(
        rule=_SLUG,
        severity=Severity.ERROR,
        tensors=names(held_by(evidence, optimizer)),
        place=optimizer.stepped_at or optimizer.made_at,
        message=f"`{optimizer.name}` {done}, and backward was never called: no parameter had a gradient{lost}",
        fix=(
            "Put what it returns into `.grad` of the parameters, or call `loss.backward()` instead"
            if calls
            else "Call `loss.backward()` before `step()`"
        ),
        evidence={
            "steps": optimizer.steps,
            "backward_passes": 0,
            "grad_calls": calls,
            "forward_passes": evidence.info.forwards,
            "zero_grads": optimizer.zero_grads,
        },
        also=(optimizer.made_at,) if optimizer.stepped_at is not None and optimizer.made_at is not None else (),
    )
