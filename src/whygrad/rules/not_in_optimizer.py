"""`queries` got a gradient in 200 of 200 backward passes, but no optimizer holds it: `optimizer` holds the others.

## What it looks for

Parameters that get gradients while no optimizer that was made holds them.

## Why it does not learn

`optimizer.step()` changes what is in its `param_groups` and nothing else. A parameter that was left out when the
optimizer was made (another module's `parameters()` were passed, a filter missed it, it was added to the model later)
gets its gradient in every backward pass and keeps its initial value. As `optimizer.zero_grad()` does not clear it
either, its gradient adds up from pass to pass.

## What it measures

For each registered parameter that requires grad: backward passes whose graph reached it (at least three), optimizers
that ever held it (none), and whether its value changed all the same, by hand or as a copy (it did not). An optimizer
must have made at least three steps; a program that updates everything by hand has none.

- Others of the same model are held by an optimizer that steps: an error.
- The whole model is held by no optimizer: a warning, as a loss with weights of its own and a network that only scores
  outputs look alike.
- What was left out runs in eval mode while the rest trains, or was loaded with `load_state_dict` and is a part of its
  own, or most of the model: an info. That is how one fine-tunes a head. So it is where optimizers hold nothing but
  tensors outside of any module, such as an image or a latent code that is fitted through a model.

A bare `nn.Parameter` outside of any module counts as a model of its own, and is an error. So is a model beside
optimizers of which none holds anything that gets a gradient: they were given the wrong tensors.

## Example

```python bad
import torch
from torch import nn

torch.manual_seed(0)
encoder, head = nn.Linear(4, 8), nn.Linear(8, 1)
model = nn.Sequential(encoder, nn.ReLU(), head)
optimizer = torch.optim.SGD(head.parameters(), lr=0.1)  # not-in-optimizer

for _ in range(5):
    loss = (model(torch.randn(16, 4)) - 1).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
```

## Fix

Give the optimizer all that is to learn.

```python good
import torch
from torch import nn

torch.manual_seed(0)
encoder, head = nn.Linear(4, 8), nn.Linear(8, 1)
model = nn.Sequential(encoder, nn.ReLU(), head)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

for _ in range(5):
    loss = (model(torch.randn(16, 4)) - 1).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
```

Parameters that are made after the optimizer join it through `optimizer.add_param_group`.

## When it is fine

A part that is to stay as it is. Say so with `requires_grad_(False)`: that saves the computation of its gradient, and
whygrad then knows.

## See also

[unregistered-parameter](unregistered-parameter.md): `parameters()` does not find it. [no-step](no-step.md): an
optimizer holds it, and never steps. [frozen-parameter](frozen-parameter.md).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from whygrad.evidence import Evidence
from whygrad.model import Finding, Optimizer, Parameter, Severity
from whygrad.rules._base import rule
from whygrad.rules._select import has_moved, holder, is_stepped, names, optimizers_of
from whygrad.rules._source import buries_a_leaf
from whygrad.rules._text import named, passes, shared_parts

_SLUG = "not-in-optimizer"
_MIN_PASSES = 3
_MIN_STEPS = 3
_PLACES = 3  # lines where the parameters are made, of those named beside the optimizer's


@rule(
    _SLUG,
    title="Parameters get gradients, but no optimizer holds them",
    severity=Severity.ERROR,
    since="0.1.0",
    explains=("missing-zero-grad", "exploding-gradient", "update-too-small"),
)
def check(evidence: Evidence) -> Iterator[Finding]:
    """Yield one finding for each model of which something was left out."""
    if not any(optimizer.steps >= _MIN_STEPS for optimizer in evidence.optimizers):
        return
    missed = [parameter for parameter in evidence.parameters if _is_missed(parameter)]
    for root in dict.fromkeys(parameter.root for parameter in missed):
        group = [p for p in missed if p.root == root and not has_moved(evidence, p)]
        if group:
            yield _finding(evidence, group)


def _is_missed(parameter: Parameter) -> bool:
    reached = parameter.reached if parameter.walked else parameter.gradient_steps
    meant = parameter.registered or (parameter.held_in == "variable" and parameter.made_at is not None)
    learns = parameter.requires_grad and reached >= _MIN_PASSES and not buries_a_leaf(parameter.made_at)
    return meant and learns and not parameter.optimizers


def _finding(evidence: Evidence, group: Sequence[Parameter]) -> Finding:
    siblings = _trained_siblings(evidence, group)
    optimizer = _optimizer_of(evidence, siblings)
    reached = max(parameter.reached for parameter in group)
    walked = max(parameter.walked for parameter in group)
    made = dict.fromkeys(parameter.made_at for parameter in group if parameter.made_at is not None)
    who, it = named(names(group)), "it" if len(group) == 1 else "them"
    return Finding(
        rule=_SLUG,
        severity=_severity(evidence, group, siblings),
        tensors=names(group),
        place=optimizer.made_at or optimizer.stepped_at,
        message=(
            f"{who} got a gradient in {reached} of {passes(walked)}, but no optimizer holds {it}: "
            f"`{optimizer.name}` holds {_instead(evidence, siblings)}"
        ),
        fix=(
            f"Give {it} to `{optimizer.name}`, where it is made or by add_param_group, or call requires_grad_(False) "
            "on what is to stay"
        ),
        evidence={
            "reached": reached,
            "backward_passes": walked,
            "optimizer_steps": optimizer.steps,
            "elements": sum(parameter.numel for parameter in group),
            "trained_siblings": len(siblings),
        },
        also=tuple(made)[:_PLACES],
    )


def _trained_siblings(evidence: Evidence, group: Sequence[Parameter]) -> list[Parameter]:
    """Return the parameters of the same model that an optimizer steps; one that the model has replaced is none."""
    root = group[0].root
    model = [p for p in evidence.parameters if root and p.root == root and p.registered and not p.stale]
    return [parameter for parameter in model if is_stepped(evidence, parameter)]


def _instead(evidence: Evidence, siblings: Sequence[Parameter]) -> str:
    """Return what the optimizers hold in place of what was left out."""
    if siblings:
        return "the others"
    if not _is_idle(evidence):
        return "other tensors only"
    replaced = any(parameter.stale for parameter in evidence.parameters if is_stepped(evidence, parameter))
    return "what the model has replaced" if replaced else "only parameters that got none"


def _is_idle(evidence: Evidence) -> bool:
    """Return whether nothing that an optimizer steps ever gets a gradient now: it holds the wrong tensors."""
    stepped = [p for p in evidence.parameters if is_stepped(evidence, p) and not p.stale]
    return not any(p.gradient_steps or p.reached for p in stepped)


def _optimizer_of(evidence: Evidence, siblings: Sequence[Parameter]) -> Optimizer:
    """Return the optimizer that trains most of the siblings; where there are none, the one that steps most."""
    stepping = [optimizer for optimizer in evidence.optimizers if optimizer.steps]
    held = [o.id for parameter in siblings for o in optimizers_of(evidence, parameter) if o.steps]
    return max(stepping, key=lambda optimizer: (held.count(optimizer.id), optimizer.steps))


def _severity(evidence: Evidence, group: Sequence[Parameter], siblings: Sequence[Parameter]) -> Severity:
    if not group[0].root or _is_idle(evidence):
        return Severity.ERROR
    if _is_auxiliary(evidence, group) or (all(p.loaded for p in group) and _is_part(evidence, group)):
        return Severity.INFO
    return Severity.ERROR if siblings else Severity.WARNING


def _is_auxiliary(evidence: Evidence, group: Sequence[Parameter]) -> bool:
    """Return whether the group only serves what is trained: an input is, or its modules alone run in eval mode."""
    trained = [parameter for parameter in evidence.parameters if is_stepped(evidence, parameter)]
    if not any(parameter.root for parameter in trained):
        return True
    return _modes(evidence, group) == {False} and _modes(evidence, trained) != {False}


def _modes(evidence: Evidence, parameters: Sequence[Parameter]) -> set[bool]:
    modules = (holder(evidence, parameter) for parameter in parameters)
    return {module.training for module in modules if module is not None and module.training is not None}


def _is_part(evidence: Evidence, group: Sequence[Parameter]) -> bool:
    """Return whether the group is most of its model, or whole branches of it: then it was chosen, not forgotten."""
    model = [p for p in evidence.parameters if p.root == group[0].root and p.registered]
    if 2 * sum(p.numel for p in group) > sum(p.numel for p in model):
        return True
    chosen = {parameter.id for parameter in group}
    branches: dict[str, set[bool]] = {}
    for parameter, branch in zip(model, _branches(model), strict=True):
        branches.setdefault(branch, set()).add(parameter.id in chosen)
    return all(len(kinds) == 1 for kinds in branches.values())


def _branches(model: Sequence[Parameter]) -> list[str]:
    """Return the first part of each name in which the names of a model differ."""
    shared = shared_parts(names(model))
    return [p.name.split(".")[shared] for p in model]
