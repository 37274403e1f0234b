"""`aux.weight` (+1) is used, but nothing computed from it reaches the loss: no gradient in 200 steps.

## What it looks for

Parameters that take part in forward, while the loss does not depend on the result.

## Why it does not learn

Backward starts at the loss and visits what the loss was computed from. A layer whose output is returned and not used,
overwritten by the next line, or a loss term that was computed and never added, is not on the way: `.grad` stays None,
and the optimizer passes over it without a word. DistributedDataParallel stops at such a parameter.

## What it measures

In the traced steps: operations that took the parameter (some), and whether the value of the loss depends on any of them
(it does not, not even through a cut). Over the whole run: backward passes that reached it (none of at least three), and
steps at which it had a gradient (none). Others were reached: of the same model, or anywhere if its optimizer steps. The
place is the last operation that uses what was computed from the parameter.

It is an error where an optimizer steps nothing else: it was made for this parameter. It is a warning where it holds
more, as it does when it was given a whole model, and an info where no optimizer holds it. That `torch.autograd.grad`
stopped the program with "One of the differentiated Tensors appears to not have been used in the graph" is an error too.

## Example

```python bad
import torch
from torch import nn

torch.manual_seed(0)
body, head, aux = nn.Linear(4, 8), nn.Linear(8, 1), nn.Linear(8, 1)
optimizer = torch.optim.SGD([*body.parameters(), *head.parameters()], lr=0.1)
aux_optimizer = torch.optim.SGD(aux.parameters(), lr=0.01)

for _ in range(5):
    hidden = body(torch.randn(16, 4)).relu()
    main = head(hidden)
    side = aux(hidden)  # unreached-parameter
    loss = (main - 1).pow(2).mean()
    optimizer.zero_grad()
    aux_optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    aux_optimizer.step()
```

## Fix

Use the result: add the missing term to the loss, or return the right tensor. If it is not needed, do not compute it.

```python good
import torch
from torch import nn

torch.manual_seed(0)
body, head, aux = nn.Linear(4, 8), nn.Linear(8, 1), nn.Linear(8, 1)
optimizer = torch.optim.SGD([*body.parameters(), *head.parameters()], lr=0.1)
aux_optimizer = torch.optim.SGD(aux.parameters(), lr=0.01)

for _ in range(5):
    hidden = body(torch.randn(16, 4)).relu()
    main = head(hidden)
    side = aux(hidden)
    loss = (main - 1).pow(2).mean() + (side + 1).pow(2).mean()
    optimizer.zero_grad()
    aux_optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    aux_optimizer.step()
```

## When it is fine

A head whose output only goes to the log, the pooler of a library's model. Keep it away from the optimizer, or put
`# whygrad: ignore[unreached-parameter]` on the line.

## See also

[unused-parameter](unused-parameter.md): no operation takes it. [detached](detached.md): the loss uses the result, and
the graph is cut.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from whygrad.evidence import Evidence
from whygrad.model import Finding, Parameter, PathEnd, Place, Severity
from whygrad.rules._base import rule
from whygrad.rules._paths import is_without_gradient, numbers, watched
from whygrad.rules._raised import DDP_UNUSED, raised_finding, raised_for
from whygrad.rules._select import by_line, has_moved, held_by, is_stepped, names
from whygrad.rules._text import at, named

_SLUG = "unreached-parameter"
_MIN_PASSES = 3
_UNUSED_INPUT = "unused-input"


@rule(
    _SLUG,
    title="A parameter is used, but the loss does not depend on the result",
    severity=Severity.ERROR,
    since="0.1.0",
    explains=("zero-gradient", "ddp-unused-parameter"),
)
def check(evidence: Evidence) -> Iterator[Finding]:
    """Yield one finding for each line at which results are dropped."""
    raised = raised_for(evidence, _UNUSED_INPUT)
    if raised is not None:
        what = named((raised.tensor,)) if raised.tensor else "one of the inputs"
        yield raised_finding(
            _SLUG,
            raised,
            raised.place,
            f"what autograd.grad differentiates{at(raised.place)} does not depend on {what}, and it raised",
            f"Compute the output from {what} itself, not from a copy, or pass allow_unused=True if that is meant",
        )
    found = _ignored(evidence)
    own = {o.id for o in evidence.optimizers if o.steps and all(p in found for p in held_by(evidence, o))}
    for severity in Severity:
        chosen = [parameter for parameter in found if _severity(parameter, own) is severity]
        for place, group in by_line(chosen, lambda parameter: parameter.ends_at or parameter.used_at):
            yield _finding(group, place, severity)


def _ignored(evidence: Evidence) -> list[Parameter]:
    """Return the parameters whose results are dropped, in forward order."""
    least = _MIN_PASSES if raised_for(evidence, DDP_UNUSED) is None else 1
    trained = {parameter.root for parameter in evidence.parameters if parameter.reached or parameter.gradient_steps}
    dropped = [p for p in evidence.parameters_in_order if p.walked >= least and _is_dropped(p)]
    meant = [p for p in dropped if p.root in trained or (trained and is_stepped(evidence, p))]
    return [parameter for parameter in meant if not has_moved(evidence, parameter)]


def _is_dropped(parameter: Parameter) -> bool:
    learnable = parameter.registered and parameter.requires_grad and not parameter.stale
    return learnable and parameter.path is PathEnd.IGNORED and is_without_gradient(parameter)


def _severity(parameter: Parameter, own: set[int]) -> Severity:
    if not own.isdisjoint(parameter.optimizers):
        return Severity.ERROR
    return Severity.WARNING if parameter.optimizers else Severity.INFO


def _finding(group: Sequence[Parameter], place: Place | None, severity: Severity) -> Finding:
    who, operation = named(names(group)), group[0].ends_with
    last = f" (last: `{operation}`)" if operation else ""
    made = dict.fromkeys(p.made_at for p in group if p.made_at is not None and p.made_at != place)
    return Finding(
        rule=_SLUG,
        severity=severity,
        tensors=names(group),
        place=place,
        message=(
            f"{who} {'is' if len(group) == 1 else 'are'} used, but nothing computed from {_it(group)}{last} reaches "
            f"the loss: no gradient{watched(group)}"
        ),
        fix=f"Let the loss depend on what {who} computes{at(place)}, or do not compute it",
        evidence={**numbers(group), "operation": operation, "uses": max(p.uses or 0 for p in group)},
        also=tuple(made),
    )


def _it(group: Sequence[Parameter]) -> str:
    return "it" if len(group) == 1 else "them"
