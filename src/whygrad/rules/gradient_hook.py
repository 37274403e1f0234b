"""a hook on `encoder.weight` (+1) leaves it a gradient of exactly zero at all 200 recorded steps.

## What it looks for

Hooks that the program sets on a tensor or a module, behind which no gradient is left.

## Why it does not learn

A function given to `register_hook` may return a gradient in place of the one it was given; one given to
`register_post_accumulate_grad_hook` may write into `.grad`, and a module's backward hook may replace what goes on to
its inputs. What they return is what everything before them gets: zeros if a mask has gone stale, a factor is 0, or a
hook that was to freeze something for a while was never removed.

## What it measures

Which parameters carry a hook of the program's own, which intermediates got one in the traced steps and which parameters
lie behind these, and which modules have backward hooks; and the gradients. A parameter is reported if its gradient was
exactly zero at each of at least five recorded steps, or never there at a step although backward reached it. A mask that
leaves some elements a gradient is left alone. So is a hook that steps an optimizer itself. A gradient that a hook left
below 1e-6 counts as well, if all its updates together took the weight by less than 2% and the loss did not fall.

Behind a hook on an intermediate, or on a module, everything that is behind it has to be zero, and something else of the
same model must not be: a loss that gives no gradient at all is no hook's fault.

## Example

```python bad
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
mask = torch.zeros(8, 4)
model[0].weight.register_hook(lambda grad: grad * mask)  # gradient-hook
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(8):
    loss = (model(torch.randn(16, 4)) - 1).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
```

## Fix

Let the hook return what is to arrive, or remove it: `register_hook` returns a handle that has `remove()`.

```python good
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
mask = torch.ones(8, 4)
mask[:, 0] = 0
model[0].weight.register_hook(lambda grad: grad * mask)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(8):
    loss = (model(torch.randn(16, 4)) - 1).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
```

## When it is fine

A hook that freezes a parameter on purpose. `requires_grad_(False)` says so, and saves the computation.

## See also

[zero-gradient](zero-gradient.md): zeros without a hook.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from whygrad.evidence import Evidence
from whygrad.model import Event, Finding, Module, Parameter, Place, Role, Severity
from whygrad.rules._base import rule
from whygrad.rules._select import is_stepped, names
from whygrad.rules._text import counted, named, number
from whygrad.rules._updates import has_fallen, losses, travel

_SLUG = "gradient-hook"
_MIN_STEPS = 5
_FAINT = 1e-6
_NOWHERE = 0.02  # of the weight, if all updates went one way


@rule(
    _SLUG,
    title="A hook wipes the gradient",
    severity=Severity.ERROR,
    since="0.1.0",
    explains=(
        *("zero-gradient", "vanishing-gradient", "dead-relu", "update-too-small", "decay-dominates"),
        *("zero-grad-misplaced", "constant-loss", "unreached-parameter"),
    ),
)
def check(evidence: Evidence) -> Iterator[Finding]:
    """Yield one finding for each line that sets a hook behind which nothing is left."""
    groups: dict[tuple[str, int], tuple[Place, str, list[Parameter]]] = {}
    for event, what, hit in _wiped(evidence):
        if event.place is not None and hit:
            key = event.place.file, event.place.line
            known = groups.setdefault(key, (event.place, what, []))[2]
            known += [parameter for parameter in hit if parameter not in known]
    for place, what, hit in groups.values():
        yield _finding(evidence, place, what, hit)


def _wiped(evidence: Evidence) -> Iterator[tuple[Event, str, Sequence[Parameter]]]:
    trained = [p for p in evidence.parameters if p.requires_grad and is_stepped(evidence, p)]
    lost = {p.id for p in trained if _is_lost(evidence, p)}
    faint = {p.id for p in trained if _is_faint(evidence, p)}
    by_id = {str(parameter.id): parameter for parameter in trained}
    for event in evidence.events_of("gradient_hook"):
        parameter = by_id.get(event.subject)
        if parameter is not None and parameter.id in lost | faint:
            yield event, "on", (parameter,)
    for event in evidence.events_of("tensor_hook"):
        behind = [p for p in trained if p.id in event.detail.get("parameters", ())]
        yield event, "behind", _if_all_lost(trained, behind, lost)
    for event in evidence.events_of("module_hook"):
        yield event, "behind", _if_all_lost(trained, _behind_module(evidence, event, trained), lost)


def _is_lost(evidence: Evidence, parameter: Parameter) -> bool:
    total = evidence.total(Role.GRADIENT, parameter.id)
    if total is None:
        return parameter.steps >= _MIN_STEPS and not parameter.gradient_steps and parameter.reached >= _MIN_STEPS
    return total.steps >= _MIN_STEPS and total.zero_steps == total.steps


def _is_faint(evidence: Evidence, parameter: Parameter) -> bool:
    """Return whether a gradient is there, and takes its parameter nowhere."""
    total = evidence.total(Role.GRADIENT, parameter.id)
    if total is None or total.steps < _MIN_STEPS or not total.statistics.max_abs < _FAINT:
        return False
    return travel(evidence, parameter) < _NOWHERE and not has_fallen(losses(evidence))


def _if_all_lost(trained: Sequence[Parameter], behind: Sequence[Parameter], lost: set[int]) -> Sequence[Parameter]:
    """Return what lies behind a hook if all of it is zero, and something of the same models is not."""
    roots = {parameter.root for parameter in behind}
    alive = any(p.root in roots and p.id not in lost and p.gradient_steps for p in trained)
    return behind if alive and all(parameter.id in lost for parameter in behind) else ()


def _behind_module(evidence: Evidence, event: Event, trained: Sequence[Parameter]) -> list[Parameter]:
    """Return the parameters in front of a module, and its own if the hook changes what comes to its output."""
    root = event.detail.get("root", "")
    inner = [m for m in evidence.modules if m.root == root and _is_within(m, event.subject) and m.order is not None]
    orders = [module.order or 0 for module in inner]
    end = (max(orders) + 1 if event.detail.get("before") else min(orders)) if orders else 0
    return [p for p in trained if p.root == root and p.order is not None and p.order < end]


def _is_within(module: Module, name: str) -> bool:
    return module.name == name or module.name.startswith(f"{name}.")


def _finding(evidence: Evidence, place: Place, what: str, hit: Sequence[Parameter]) -> Finding:
    total = evidence.total(Role.GRADIENT, hit[0].id)
    if total is not None and total.statistics.max_abs > 0:
        state = f"a gradient of at most {number(total.statistics.max_abs)} at {counted(total.steps, 'recorded step')}"
    elif total is None:
        state = f"no gradient at any of {counted(hit[0].steps, 'step')}"
    else:
        state = f"a gradient of exactly zero at all {counted(total.steps, 'recorded step')}"
    who, it = named(names(hit)), "it" if len(hit) == 1 else "them"
    where = f"a hook on {who} leaves {it}" if what == "on" else f"a hook leaves {who}, which are behind it,"
    return Finding(
        rule=_SLUG,
        severity=Severity.ERROR,
        tensors=names(hit),
        place=place,
        message=f"{where} {state}",
        fix="Let the hook return the gradient that is to arrive, or remove it; requires_grad_(False) freezes",
        evidence={
            "steps": max(parameter.steps for parameter in hit),
            "recorded_steps": 0 if total is None else total.steps,
            "gradient_steps": max(parameter.gradient_steps for parameter in hit),
            "parameters": len(hit),
        },
    )
