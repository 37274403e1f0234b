"""`adapter.weight` (+3) got no gradient in 50 steps: no input of the reentrant checkpoint at train.py:42 requires grad.

## What it looks for

Parameters that were to learn, inside a stretch under `torch.utils.checkpoint` in its reentrant form, of which no input
requires grad.

## Why it does not learn

The reentrant form runs the stretch under `no_grad` and hands autograd a function whose only inputs are the tensors that
were passed to `checkpoint`. Parameters used inside are no inputs. If none of the tensors requires grad (raw data, the
output of a frozen embedding), the result does not require grad either, and the whole stretch is never differentiated.
PyTorch warns once, "None of the inputs have requires_grad=True. Gradients will be None". Training adapters on a frozen
model with `gradient_checkpointing` is where it happens most.

## What it measures

In the traced steps: operations that depend on a parameter, that the loss depends on, and that ran inside a reentrant
checkpoint without grad mode. Over the whole run: no gradient by any path in any step.

## Example

```python bad
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

torch.manual_seed(0)
block, head = nn.Linear(4, 8), nn.Linear(8, 1)
parameters = [*block.parameters(), *head.parameters()]
optimizer = torch.optim.SGD(parameters, lr=0.1)

for _ in range(5):
    x = torch.randn(16, 4)
    hidden = checkpoint(block, x, use_reentrant=True)  # reentrant-checkpoint
    loss = (head(hidden) - 1).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
```

## Fix

Use `use_reentrant=False`, which records the parameters too. Where a library makes the call, let the input require grad:
`model.enable_input_require_grads()` in transformers, `x.requires_grad_()` elsewhere.

```python good
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

torch.manual_seed(0)
block, head = nn.Linear(4, 8), nn.Linear(8, 1)
parameters = [*block.parameters(), *head.parameters()]
optimizer = torch.optim.SGD(parameters, lr=0.1)

for _ in range(5):
    x = torch.randn(16, 4)
    hidden = checkpoint(block, x, use_reentrant=False)
    loss = (head(hidden) - 1).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
```

## When it is fine

A frozen stretch at the start of a model, of which nothing is to learn.

## See also

[no-grad-region](no-grad-region.md): grad mode was switched off by the program.
"""

from __future__ import annotations

from collections.abc import Iterator

from whygrad.evidence import Evidence
from whygrad.model import Cut, Finding, Place, Severity
from whygrad.rules._base import rule
from whygrad.rules._cuts import FOLLOWS, Case, cut_findings, is_checkpoint
from whygrad.rules._text import at

_SLUG = "reentrant-checkpoint"
_FIX = "Pass use_reentrant=False to checkpoint, or let its input require grad"


@rule(
    _SLUG,
    title="A reentrant checkpoint gets no input that requires grad",
    severity=Severity.ERROR,
    since="0.1.0",
    explains=FOLLOWS,
)
def check(evidence: Evidence) -> Iterator[Finding]:
    """Yield one finding for each function that calls checkpoint in vain."""
    yield from cut_findings(evidence, Case(_SLUG, is_checkpoint, _line, _what, lambda _: _FIX))


def _line(cut: Cut) -> Place | None:
    return cut.mode_at or cut.place


def _what(cut: Cut) -> str:
    return f"no input of the reentrant checkpoint{at(_line(cut))} requires grad"
