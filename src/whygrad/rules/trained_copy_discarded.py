"""`model` was copied 40 times and the copies trained, but `out.weight` (+3) of it never changed, and it is evaluated.

## What it looks for

Models that are evaluated and stay as they are, while copies of them are trained that nobody looks at.

## Why it does not learn

`copy.deepcopy(model)` makes new parameters, and so does a model that loads another one's `state_dict()`. Training the
copy leaves the original as it is. What the copy has learned has to be brought back: by going on with the copy, or by
loading its weights into the original. The usual cases are federated rounds whose average is computed and not loaded, a
function that trains a copy of its argument and returns the loss, and folds of a cross-validation.

## What it measures

Which parameters were deep-copied, from which, and which were loaded from another model's `state_dict()`; which of both
an optimizer stepped; and how often each model was called without grad, or set to eval mode, after the first step.
Reported is a model at least half of whose parameters

- no optimizer ever stepped, and whose values never changed in the run,
- have copies that were trained,
- and were evaluated, while no copy was.

The other way round it is a warning: a copy that was taken before the first step and never changed is evaluated, and the
original, which is trained, is not. An average of the weights that nobody updates looks like that.

A frozen teacher, or a reference policy, looks the same, but is called at each step of its student: a model that was
evaluated more often than once in two steps is left alone.

## Example

```python bad
import copy
import torch
from torch import nn


def fit(model, x, y):
    local = copy.deepcopy(model)  # trained-copy-discarded
    optimizer = torch.optim.SGD(local.parameters(), lr=0.1)
    for _ in range(8):
        loss = nn.functional.mse_loss(local(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return local.state_dict()


torch.manual_seed(0)
model = nn.Linear(4, 1)
x = torch.randn(32, 4)
for _ in range(3):
    fit(model, x, x[:, :1])
    with torch.no_grad():
        print((model(x) - x[:, :1]).abs().mean().item())
```

## Fix

Train the model itself, return the copy and go on with it, or load the copy's weights into the model.

```python good
import copy
import torch
from torch import nn


def fit(model, x, y):
    local = copy.deepcopy(model)
    optimizer = torch.optim.SGD(local.parameters(), lr=0.1)
    for _ in range(8):
        loss = nn.functional.mse_loss(local(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return local.state_dict()


torch.manual_seed(0)
model = nn.Linear(4, 1)
x = torch.randn(32, 4)
for _ in range(3):
    model.load_state_dict(fit(model, x, x[:, :1]))
    with torch.no_grad():
        print((model(x) - x[:, :1]).abs().mean().item())
```

## When it is fine

A comparison of the model before training with what its copies have learned.

## See also

[stale-optimizer](stale-optimizer.md): a copy is used, the original is in the optimizer.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from whygrad.evidence import Evidence
from whygrad.model import Finding, Parameter, Place, Severity
from whygrad.rules._base import rule
from whygrad.rules._select import has_moved, is_stepped, names
from whygrad.rules._text import counted, named

_SLUG = "trained-copy-discarded"
_MOST_EVALUATIONS = 0.5  # of the steps


@rule(
    _SLUG,
    title="A copy is trained, and the original is used",
    severity=Severity.ERROR,
    since="0.1.0",
    explains=("not-in-optimizer", "stale-optimizer", "unused-parameter", "unreached-parameter", "detached"),
)
def check(evidence: Evidence) -> Iterator[Finding]:
    """Yield one finding for each model whose trained copies are lost."""
    copies: dict[int, list[Parameter]] = {}
    for parameter in evidence.parameters:
        if parameter.copy_of is not None and parameter.copy_of != parameter.id:
            copies.setdefault(parameter.copy_of, []).append(parameter)
    yield from _of_early_copies(evidence)
    left = [p for p in evidence.parameters if p.id in copies and _is_left_behind(evidence, p, copies[p.id])]
    for root in dict.fromkeys(parameter.root for parameter in left):
        group = [parameter for parameter in left if parameter.root == root]
        model = [p for p in evidence.parameters if p.root == root and p.registered and p.copy_of is None]
        if 2 * len(group) >= len(model):
            yield _finding(evidence, group, copies)


def _of_early_copies(evidence: Evidence) -> Iterator[Finding]:
    """Yield one finding for each copy, taken before the first step, that is evaluated in place of what is trained."""
    by_id = {parameter.id: parameter for parameter in evidence.parameters}
    early = [p for p in evidence.parameters if p.copied_step == 0 and p.copy_of in by_id and _stands(evidence, p)]
    pairs = [(p, by_id[p.copy_of]) for p in early if p.copy_of is not None]
    used = [(p, o) for p, o in pairs if o.gradient_steps and is_stepped(evidence, o) and not o.evaluations]
    for root in dict.fromkeys(copy.root for copy, _ in used):
        group = [pair for pair in used if pair[0].root == root]
        model = [p for p in evidence.parameters if p.root == root and p.registered and p.copied_step == 0]
        if 2 * len(group) >= len(model):
            yield _early(evidence, [copy for copy, _ in group], [original for _, original in group])


def _early(evidence: Evidence, copies: Sequence[Parameter], originals: Sequence[Parameter]) -> Finding:
    first, trained = copies[0], originals[0]
    return Finding(
        rule=_SLUG,
        severity=Severity.WARNING,
        tensors=names(copies),
        place=first.copied_at,
        message=(
            f"`{first.root}` is a copy of `{trained.root}` from before the first step: it is evaluated, and "
            f"{named(names(copies))} never changed in {counted(trained.steps, 'step')} of `{trained.root}`"
        ),
        fix=f"Evaluate `{trained.root}`, or bring what it learns into `{first.root}`: update the average, or load it",
        evidence={
            "steps_of_original": trained.steps,
            "evaluations": first.evaluations,
            "steps": evidence.info.steps,
            "parameters": len(copies),
        },
    )


def _stands(evidence: Evidence, parameter: Parameter) -> bool:
    """Return whether a parameter never changed, and was evaluated now and then."""
    if is_stepped(evidence, parameter) or has_moved(evidence, parameter):
        return False
    return 0 < parameter.evaluations <= _MOST_EVALUATIONS * evidence.info.steps


def _is_left_behind(evidence: Evidence, original: Parameter, copies: Sequence[Parameter]) -> bool:
    if not _stands(evidence, original) or not original.requires_grad:
        return False
    trained = [copy for copy in copies if copy.gradient_steps and is_stepped(evidence, copy)]
    return bool(trained) and not any(copy.evaluations for copy in copies)


def _finding(evidence: Evidence, group: Sequence[Parameter], copies: dict[int, list[Parameter]]) -> Finding:
    first = group[0]
    trained = copies[first.id]
    places = [copy.copied_at for parameter in group for copy in copies[parameter.id]]
    stepped = [o.stepped_at for o in evidence.optimizers if any(o.id in copy.optimizers for copy in trained)]
    known: list[Place] = list(dict.fromkeys(place for place in (*places, *stepped) if place is not None))
    times = "once and the copy" if len(trained) == 1 else f"{len(trained)} times and the copies"
    return Finding(
        rule=_SLUG,
        severity=Severity.ERROR,
        tensors=names(group),
        place=known[0] if known else None,
        message=(
            f"`{first.root}` was copied {times} trained, but {named(names(group))} of it never changed, and it is "
            "evaluated"
        ),
        fix=f"Train `{first.root}` itself, go on with the copy, or load what the copies learned into `{first.root}`",
        evidence={
            "copies": len(trained),
            "steps_of_copies": sum(copy.steps for copy in trained),
            "evaluations": first.evaluations,
            "steps": evidence.info.steps,
            "parameters": len(group),
        },
        also=tuple(known[1:3]),
    )
