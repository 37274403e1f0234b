"""`blocks.0.weight` (+3) got a gradient in every backward pass, but `blocks` is a plain list: no optimizer holds it.

## What it looks for

Layers and parameters that a module keeps in a plain list, tuple, dict, attribute or buffer, where `parameters()` does
not look.

## Why it does not learn

`nn.Module` registers what is assigned to an attribute if it is an `nn.Module` or an `nn.Parameter`. A list, a dict, a
plain tensor or an object of another class is stored as it is: what lies in it is used in `forward` and gets gradients,
but `model.parameters()` does not find it, so `optimizer = Adam(model.parameters())` never holds it. It is also left out
of `state_dict()`, `model.to(device)` and `model.train()`. A tensor that is registered as a buffer is in these, and not
in `parameters()`, whether it requires grad or not.

## What it measures

For each tensor found in such a place: backward passes whose graph reached it (at least two), optimizers that ever held
it (none), and whether its value changed all the same (it did not). An optimizer that steps must exist, or the program
ended with "optimizer got an empty parameter list", which says that nothing was registered.

It is an info where the tensors were loaded with `load_state_dict` or their module runs in eval mode: hiding a finished
network in a list is a known way to keep it out of `parameters()`. A plain tensor, no `nn.Parameter`, in a program that
calls `torch.autograd.grad` is passed over: points at which a derivative is wanted require grad too.

## Example

```python bad
import torch
from torch import nn


class Blocks(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = [nn.Linear(4, 4) for _ in range(2)]  # unregistered-parameter
        self.head = nn.Linear(4, 1)

    def forward(self, x):
        for block in self.blocks:
            x = block(x).relu()
        return self.head(x)


torch.manual_seed(0)
model = Blocks()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(5):
    loss = (model(torch.randn(16, 4)) - 1).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
```

## Fix

Use `nn.ModuleList` or `nn.ModuleDict` for layers, `nn.ParameterList` or `nn.ParameterDict` for parameters, and
`nn.Parameter` for a tensor.

```python good
import torch
from torch import nn


class Blocks(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList(nn.Linear(4, 4) for _ in range(2))
        self.head = nn.Linear(4, 1)

    def forward(self, x):
        for block in self.blocks:
            x = block(x).relu()
        return self.head(x)


torch.manual_seed(0)
model = Blocks()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(5):
    loss = (model(torch.randn(16, 4)) - 1).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
```

## When it is fine

A pretrained network that only scores outputs (a perceptual loss), kept in a list on purpose. Better say so with
`requires_grad_(False)`: then no gradient is computed for it either.

## See also

[not-in-optimizer](not-in-optimizer.md): registered, but not held.
[recreated-each-forward](recreated-each-forward.md): made inside `forward`, and not kept at all.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from whygrad.evidence import Evidence
from whygrad.model import Finding, Module, Parameter, Place, Severity
from whygrad.rules._base import rule
from whygrad.rules._raised import EMPTY_OPTIMIZER, raised_for
from whygrad.rules._select import by_line, has_moved, holder, names
from whygrad.rules._text import named, passes

_SLUG = "unregistered-parameter"
_MIN_REACHED = 2  # once: a layer that is made anew in each forward
_KINDS = {"list": "a plain list", "dict": "a plain dict", "attribute": "a plain attribute", "buffer": "a buffer"}


@rule(
    _SLUG,
    title="Parameters are kept where `parameters()` does not look",
    severity=Severity.ERROR,
    since="0.1.0",
    explains=("not-in-optimizer", "missing-zero-grad", "exploding-gradient", "update-too-small"),
)
def check(evidence: Evidence) -> Iterator[Finding]:
    """Yield one finding for each line that hides parameters."""
    hidden = [p for p in evidence.parameters if _is_hidden(p) and _is_meant(evidence, p) and not has_moved(evidence, p)]
    for severity, on_purpose in ((Severity.ERROR, False), (Severity.INFO, True)):
        chosen = [parameter for parameter in hidden if _is_on_purpose(evidence, parameter) is on_purpose]
        for place, group in by_line(chosen, lambda parameter: parameter.assigned_at or parameter.made_at):
            yield _finding(evidence, group, place, severity)


def _is_hidden(parameter: Parameter) -> bool:
    in_module = not parameter.registered and parameter.held_in in _KINDS
    return in_module and parameter.requires_grad and not parameter.optimizers


def _is_meant(evidence: Evidence, parameter: Parameter) -> bool:
    """Return whether the parameter was to be trained: the loss uses it, and a program that trains is at work."""
    if _is_point(evidence, parameter):
        return False
    if raised_for(evidence, EMPTY_OPTIMIZER) is not None:
        return not any(p.root == parameter.root and p.registered for p in evidence.parameters)
    reached = max(parameter.reached, parameter.gradient_steps) >= _MIN_REACHED
    return reached and (any(o.steps for o in evidence.optimizers) or _has_moving_sibling(evidence, parameter))


def _is_point(evidence: Evidence, parameter: Parameter) -> bool:
    """Return whether it is a plain tensor that derivatives are taken at: only an nn.Parameter has a line of birth."""
    return parameter.made_at is None and evidence.info.grad_calls > 0


def _has_moving_sibling(evidence: Evidence, parameter: Parameter) -> bool:
    return any(p.root == parameter.root and p.registered and has_moved(evidence, p) for p in evidence.parameters)


def _is_on_purpose(evidence: Evidence, parameter: Parameter) -> bool:
    layer = _layer(evidence, parameter)
    return parameter.loaded or (layer is not None and layer.training is False)


def _layer(evidence: Evidence, parameter: Parameter) -> Module | None:
    """Return the hidden module that holds the parameter; None where the container itself holds it."""
    module = holder(evidence, parameter)
    is_owner = module is not None and (module.root, module.name) == (parameter.root, parameter.module)
    return None if is_owner else module


def _finding(evidence: Evidence, group: Sequence[Parameter], place: Place | None, severity: Severity) -> Finding:
    first = group[0]
    reached = max(parameter.reached for parameter in group)
    walked = max(parameter.walked for parameter in group)
    got = f"got a gradient in {reached} of {passes(walked)}" if reached else "is in the model"
    return Finding(
        rule=_SLUG,
        severity=severity,
        tensors=names(group),
        place=place,
        message=(
            f"{named(names(group))} {got}, but `{first.attribute}` is {_KINDS[first.held_in]}, where `parameters()` "
            "does not look: no optimizer holds it"
        ),
        fix=_fix(first, in_layer=_layer(evidence, first) is not None),
        evidence={
            "reached": reached,
            "backward_passes": walked,
            "held_in": first.held_in,
            "elements": sum(parameter.numel for parameter in group),
        },
    )


def _fix(parameter: Parameter, *, in_layer: bool) -> str:
    attribute = f"`self.{parameter.attribute}`"
    if parameter.held_in == "buffer":
        return f"Make {attribute} an nn.Parameter, or give it no gradient if it is a mere constant"
    if parameter.held_in == "attribute":
        return (
            f"Let the class of {attribute} derive from nn.Module, or give its layers to the model"
            if in_layer
            else f"Make {attribute} an nn.Parameter"
        )
    return f"Make {attribute} an {_container(parameter, in_layer=in_layer)}, so that `parameters()` finds what it holds"


def _container(parameter: Parameter, *, in_layer: bool) -> str:
    """Return the class to use, with the one inside it where a tensor lies in a container in a container."""
    kind = parameter.held_in.capitalize()
    if in_layer:
        return f"nn.Module{kind}"
    if parameter.order is None:  # never called: it may be a layer or the container itself that holds the tensor
        return f"nn.Module{kind}, or an nn.Parameter{kind} if it holds bare parameters"
    start = f"{parameter.module}.{parameter.attribute}." if parameter.module else f"{parameter.attribute}."
    path = parameter.name.partition(start)[2].split(".")
    inner = "List" if path[-1].isdecimal() else "Dict"
    return f"nn.Module{kind} of nn.Parameter{inner}" if len(path) > 1 else f"nn.Parameter{kind}"
