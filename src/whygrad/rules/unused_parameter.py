"""`head` took part in no operation and got no gradient in 200 steps: `head.weight` (+1) does not learn.

## What it looks for

A parameter of a model that no operation of `forward` ever takes as input.

## Why it does not learn

The loss does not depend on it, so backward does not reach it and its `.grad` stays None. An optimizer passes over a
parameter whose `.grad` is None without a word, weight decay included: the parameter keeps its initial value.
DistributedDataParallel stops at such a parameter ("Expected to have finished reduction in the prior iteration").

## What it measures

For each registered parameter that requires grad: torch calls of traced steps that took it as input (none), backward
passes whose graph reached it (none of at least three), steps at which it had a gradient (none), and whether its value
changed all the same (it did not). Other parameters of the same model must have been reached; a model that is not
trained at all is no case for this rule. It waits for three passes because layers may take turns from one to the next.
Where no step was traced (under `torch.compile`) the rule says nothing.

It is a warning where an optimizer holds the parameter, which shows that it was meant to learn, else an info. One pass
is enough where DistributedDataParallel stopped the program because of it.

## Example

```python bad
import torch
from torch import nn


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(4, 8)
        self.norm = nn.LayerNorm(8)  # unused-parameter
        self.head = nn.Linear(8, 3)

    def forward(self, x):
        return self.head(self.body(x).relu())


torch.manual_seed(0)
model = Classifier()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(5):
    x, y = torch.randn(16, 4), torch.randint(0, 3, (16,))
    loss = nn.functional.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
```

## Fix

Use the layer in `forward`, or delete it.

```python good
import torch
from torch import nn


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(4, 8)
        self.norm = nn.LayerNorm(8)
        self.head = nn.Linear(8, 3)

    def forward(self, x):
        return self.head(self.norm(self.body(x).relu()))


torch.manual_seed(0)
model = Classifier()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(5):
    x, y = torch.randn(16, 4), torch.randint(0, 3, (16,))
    loss = nn.functional.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
```

## When it is fine

A head for another phase or another task, the pooler of a library's model, an expert that no input was routed to. Put
`# whygrad: ignore[unused-parameter]` on the line that makes it, or keep it away from the optimizer.

## See also

[unreached-parameter](unreached-parameter.md): used, but the loss does not depend on it.
[not-in-optimizer](not-in-optimizer.md): used, but not held. [unregistered-parameter](unregistered-parameter.md): used,
but not found by `parameters()`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from whygrad.evidence import Evidence
from whygrad.model import Finding, Parameter, PathEnd, Place, Severity
from whygrad.rules._base import rule
from whygrad.rules._raised import DDP_UNUSED, raised_for
from whygrad.rules._select import by_line, has_moved, names, optimizer_names
from whygrad.rules._text import counted, named, passes, shared_parts

_SLUG = "unused-parameter"
_MIN_PASSES = 3


@rule(
    _SLUG,
    title="A parameter is never used in forward",
    severity=Severity.WARNING,
    since="0.1.0",
    explains=("zero-gradient", "ddp-unused-parameter"),
)
def check(evidence: Evidence) -> Iterator[Finding]:
    """Yield one finding for each line that makes unused parameters."""
    trained = {parameter.root for parameter in evidence.parameters if parameter.reached or parameter.gradient_steps}
    least = _MIN_PASSES if raised_for(evidence, DDP_UNUSED) is None else 1
    idle = [p for p in evidence.parameters if p.root in trained and _is_unused(p, least)]
    unused = [parameter for parameter in idle if not has_moved(evidence, parameter)]
    for severity, held in ((Severity.WARNING, True), (Severity.INFO, False)):
        chosen = [parameter for parameter in unused if bool(parameter.optimizers) is held]
        for place, group in by_line(chosen, lambda parameter: parameter.made_at):
            yield _finding(evidence, group, place, severity)


def _is_unused(parameter: Parameter, passes_at_least: int) -> bool:
    idle = parameter.uses == 0 if parameter.path is None else parameter.path is PathEnd.UNUSED
    untouched = idle and not parameter.reached and not parameter.gradient_steps
    learnable = parameter.registered and parameter.requires_grad and not parameter.stale
    return untouched and learnable and parameter.walked >= passes_at_least


def _finding(evidence: Evidence, group: Sequence[Parameter], place: Place | None, severity: Severity) -> Finding:
    steps = max(parameter.steps for parameter in group)
    walked = max(parameter.walked for parameter in group)
    seen = counted(steps, "step") if steps else passes(walked)
    what = _layers(evidence, group)
    return Finding(
        rule=_SLUG,
        severity=severity,
        tensors=names(group),
        place=place,
        message=f"{what} took part in no operation and got no gradient in {seen}: {_stand(group)} not learn",
        fix=f"Use {what} in forward(), or delete it",
        evidence={
            "steps": steps,
            "gradient_steps": 0,
            "backward_passes": walked,
            "reached": 0,
            "elements": sum(parameter.numel for parameter in group),
            "optimizers": optimizer_names(evidence, group[0]),
        },
    )


def _stand(group: Sequence[Parameter]) -> str:
    return f"{named(names(group))} {'does' if len(group) == 1 else 'do'}"


def _layers(evidence: Evidence, group: Sequence[Parameter]) -> str:
    """Return the module that covers exactly the unused parameters, or the modules that hold them."""
    unused = names(group)
    prefix = ".".join(unused[0].split(".")[: shared_parts(unused)])
    if prefix and sum(p.name.startswith(f"{prefix}.") for p in evidence.parameters) == len(unused):
        return f"`{prefix}`"
    return named(dict.fromkeys(p.name.rpartition(".")[0] if p.module else p.name for p in group))
