"""`optimizer` holds 6 parameters that the model has replaced; `inp.weight` (+5), which it uses now, no optimizer holds.

## What it looks for

An optimizer that steps parameters which the model no longer uses, while no optimizer holds those that it uses.

## Why it does not learn

An optimizer keeps the tensors it was given, not the module or their names. If a layer is replaced afterwards (pruning,
a new head, a resized embedding, `model.weight = nn.Parameter(...)`), or if a copy of the model is trained in its place,
the new parameters get gradients and nobody moves them. The old ones stay alive inside the optimizer; `step()` runs over
them without a word, as their `.grad` is None or never changes again.

## What it measures

Parameters that an optimizer holds and steps, that a module once held and no module holds now; and parameters of the
same model that get gradients (in at least three backward passes), that no optimizer ever held, and whose value does not
change. Where they were replaced before any model was called, the new ones are known by the names of their attributes.
Or: an optimizer none of whose parameters ever got a gradient, beside a model with parameters of the same names and
shapes, which get gradients and which no optimizer holds: the optimizer holds the original, the program trains its copy.
Or: one all of whose parameters got their last gradient before others of the same names and shapes, which no optimizer
holds, got their first, and which steps on: the whole model was made anew.
Parameters on which the loss depends, cut off or not, are held rightly. Models that are replaced together with their
optimizer are no case of this.

## Example

```python bad
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)  # stale-optimizer

for step in range(12):
    if step == 4:
        model[0] = nn.Linear(4, 8)
    loss = (model(torch.randn(16, 4)) - 1).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
```

## Fix

Make the optimizer anew after the replacement, or call `add_param_group` with the new parameters; give each copy of a
model an optimizer of its own.

```python good
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

for step in range(12):
    if step == 4:
        model[0] = nn.Linear(4, 8)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loss = (model(torch.randn(16, 4)) - 1).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
```

## When it is fine

An optimizer of an earlier phase that is not stepped any more.

## See also

[not-in-optimizer](not-in-optimizer.md): it was never given to one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from whygrad.evidence import Evidence
from whygrad.model import CutKind, Finding, Optimizer, Parameter, PathEnd, Severity
from whygrad.rules._base import rule
from whygrad.rules._select import has_moved, held_by, names
from whygrad.rules._text import counted, named, passes

_SLUG = "stale-optimizer"
_MIN_PASSES = 3
_COPIES = (CutKind.COPY, CutKind.DATA, CutKind.OVERWRITTEN)
_PLACES = 3  # lines where the new parameters are made, of those named beside the optimizer's


@rule(
    _SLUG,
    title="The optimizer holds parameters that the model no longer uses",
    severity=Severity.ERROR,
    since="0.1.0",
    explains=(
        *("not-in-optimizer", "detached", "unused-parameter", "unreached-parameter"),
        *("missing-zero-grad", "exploding-gradient"),
    ),
)
def check(evidence: Evidence) -> Iterator[Finding]:
    """Yield one finding for each optimizer that was left with the old parameters."""
    orphans = [p for p in evidence.parameters if _is_orphan(p) and not has_moved(evidence, p)]
    for optimizer in evidence.optimizers:
        held = held_by(evidence, optimizer) if optimizer.steps else ()
        stale = [parameter for parameter in held if parameter.stale]
        replaced = _of_same_models(stale, orphans)
        if replaced:
            yield _finding(optimizer, stale, replaced, names(replaced), "the model has replaced")
            continue
        successors = _successors(held, orphans)
        if successors:
            yield _finding(optimizer, held, successors, names(successors), "the model has replaced")
            continue
        copies = _copies(evidence, held, orphans)
        if copies:
            yield _finding(optimizer, held, copies, names((*copies, *held)), "get no gradient")


def _is_orphan(parameter: Parameter) -> bool:
    alone = parameter.registered and parameter.requires_grad and not parameter.optimizers
    return alone and max(parameter.reached, parameter.gradient_steps) >= _MIN_PASSES


def _of_same_models(stale: Sequence[Parameter], orphans: Sequence[Parameter]) -> list[Parameter]:
    roots = {parameter.root for parameter in stale}
    nameless = {parameter.attribute for parameter in stale if not parameter.root}  # gone before any model was called
    return [p for p in orphans if p.root in roots or p.attribute in nameless]


def _is_used(evidence: Evidence, parameter: Parameter) -> bool:
    """Return whether the loss depends on a parameter other than by a copy of it."""
    cuts = evidence.cuts_of(parameter) if parameter.path is PathEnd.CUT else ()
    return any(cut.kind not in _COPIES for cut in cuts)


def _copies(evidence: Evidence, held: Sequence[Parameter], orphans: Sequence[Parameter]) -> list[Parameter]:
    """Return the parameters of a model that looks like what is held, where that one never gets a gradient."""
    if not held or any(p.reached or p.gradient_steps or not p.requires_grad or _is_used(evidence, p) for p in held):
        return []
    looks = {_look(parameter) for parameter in held}
    alike = [p for p in orphans if _look(p) in looks]
    return alike if {_look(parameter) for parameter in alike} == looks else []


def _successors(held: Sequence[Parameter], orphans: Sequence[Parameter]) -> list[Parameter]:
    """Return the parameters of a model that was made anew, where the optimizer goes on to step those of the old one."""
    lasts = [p.last_gradient_step for p in held if p.last_gradient_step is not None]
    if not lasts or not all(p.steps - p.gradient_steps >= _MIN_PASSES for p in held):
        return []
    later = [p for p in orphans if p.first_gradient_step is not None and p.first_gradient_step > max(lasts)]
    looks = {_look(parameter) for parameter in held}
    alike = [p for p in later if _look(p) in looks]
    return alike if {_look(parameter) for parameter in alike} == looks else []


def _look(parameter: Parameter) -> tuple[str, str, tuple[int, ...]]:
    return parameter.module, parameter.attribute, parameter.shape


def _finding(
    optimizer: Optimizer, old: Sequence[Parameter], new: Sequence[Parameter], tensors: tuple[str, ...], what: str
) -> Finding:
    made = dict.fromkeys(parameter.made_at for parameter in new if parameter.made_at is not None)
    held = counted(len(old), "parameter")
    walked = max(parameter.walked for parameter in new)
    reached = max(parameter.reached for parameter in new)
    return Finding(
        rule=_SLUG,
        severity=Severity.ERROR,
        tensors=tensors,
        place=optimizer.made_at or optimizer.stepped_at,
        message=(
            f"`{optimizer.name}` holds {held} that {what}; {named(names(new))} got a gradient in {reached} of "
            f"{passes(walked)}, and no optimizer holds {'it' if len(new) == 1 else 'them'}"
        ),
        fix=f"Make `{optimizer.name}` anew with the parameters that are in use, after they are made",
        evidence={
            "stale_parameters": len(old),
            "reached": reached,
            "backward_passes": walked,
            "optimizer_steps": optimizer.steps,
            "elements": sum(parameter.numel for parameter in new),
        },
        also=tuple(place for place in tuple(made)[:_PLACES] if place != optimizer.made_at),
    )
