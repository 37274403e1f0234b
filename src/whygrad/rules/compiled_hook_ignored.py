"""The hook on a `Linear` was set after torch.compile had compiled the model: it did not run in any of 20 steps.

## What it looks for

`register_forward_hook`, `register_forward_pre_hook`, `register_full_backward_hook` and
`register_full_backward_pre_hook` on a module inside of one that `torch.compile` has compiled already.

## Why it does not learn

torch.compile puts the hooks of inner modules into the compiled code when it compiles, at the first call, and does not
look at them again: by default it guards none (`torch._dynamo.config.skip_nnmodule_hook_guards`). What the hook was to
do, record a gradient, scale it, add the output of an adapter, never happens, and nothing says so. Hooks of the compiled
module itself run, and so do hooks on tensors.

## What it measures

The graphs that torch.compile had made when it was called, when the hook was set, and at the end. The hook is ignored
where some graph was made before it was set and none after, it is still set at the end, and steps were made in between.
Hooks that libraries set are left alone.

The place is the line that set the hook.

## Example

```python bad
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
model = torch.compile(net, backend="eager")
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)

def damped(module, inputs, output):
    return 0.5 * output

for step in range(10):
    if step == 2:
        net[0].register_forward_hook(damped)  # compiled-hook-ignored
    loss = (model(torch.randn(16, 4)) - 1).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
```

## Fix

Set hooks before the first call of the compiled model.

```python good
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
model = torch.compile(net, backend="eager")
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)

def damped(module, inputs, output):
    return 0.5 * output

net[0].register_forward_hook(damped)
for step in range(10):
    loss = (model(torch.randn(16, 4)) - 1).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
```

To set one later, call `torch._dynamo.reset()` after it, or put it on a tensor.

## When it is fine

A hook for another, uncompiled use of the same module.
"""

from __future__ import annotations

from collections.abc import Iterator

from whygrad.evidence import Evidence
from whygrad.model import Event, Finding, Severity
from whygrad.rules._base import rule
from whygrad.rules._events import place_in
from whygrad.rules._text import at, counted

_SLUG = "compiled-hook-ignored"
_EVENT = "compiled_hook_ignored"


@rule(
    _SLUG,
    title="A hook that was set after compilation never runs",
    severity=Severity.WARNING,
    since="0.1.0",
)
def check(evidence: Evidence) -> Iterator[Finding]:
    """Yield a finding for each line that sets hooks on compiled modules."""
    yield from map(_finding, evidence.events_of(_EVENT))


def _finding(event: Event) -> Finding:
    steps = int(event.detail.get("steps", 0))
    compiled_at = place_in(event, "compiled_at")
    more = f" (+{event.count - 1})" if event.count > 1 else ""
    return Finding(
        rule=_SLUG,
        severity=Severity.WARNING,
        tensors=(),
        place=event.place,
        message=(
            f"The hook on a `{event.subject}`{more} was set after torch.compile had compiled the model: "
            f"it did not run in any of {counted(steps, 'step')}"
        ),
        fix=f"Set it before the first call of what is compiled{at(compiled_at)}, or call torch._dynamo.reset() then",
        evidence={
            "hook": event.detail.get("hook", ""),
            "hooks": event.count,
            "steps": steps,
            "graphs": event.detail.get("graphs", 0),
        },
        also=() if compiled_at is None else (compiled_at,),
    )
