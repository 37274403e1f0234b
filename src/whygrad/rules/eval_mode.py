"""`model` was in eval mode in 190 of 200 steps: its 4 layers with Dropout and BatchNorm did not train.

## What it looks for

A model that is trained while it is in eval mode, though it began in training mode, or though its normalisation layers
have never seen a batch.

## Why it does not learn

In eval mode Dropout passes everything on, and BatchNorm normalises by its running statistics and leaves them alone. A
`model.eval()` for validation stays in force until the next `model.train()`: a loop that calls `train()` once, in front
of all epochs, trains the first epoch with Dropout and all others without it, on statistics that grow old. A BatchNorm
layer that was never in training mode divides by 1 and subtracts 0: it is no normalisation at all.

## What it measures

The mode of each root model at its last call before the backward pass of each step that is watched, and the mode of its
layers. Reported is a model that an optimizer steps, that has layers which behave differently in eval mode (Dropout
with p above 0, BatchNorm and InstanceNorm with running statistics), and that was in eval mode in at least half of the
steps, five or more, and at the last one:

- it was in training mode in earlier steps: a warning;
- it never was, and has BatchNorm layers whose statistics are as they were made: a warning;
- it never was, and only Dropout rests, or the statistics are old: an info, as fine-tuning is often meant.

Normalisation layers alone in eval mode, in a model that is in training mode, are the known way to freeze their
statistics, and nothing is said.

The place is the last line that called `eval()`.

## Example

```python bad
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Dropout(0.2), nn.Linear(16, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
model.train()
for epoch in range(4):
    for _ in range(4):
        loss = (model(torch.randn(16, 4)) - 1).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()  # eval-mode
    with torch.no_grad():
        model(torch.randn(16, 4))
```

## Fix

Call `model.train()` at the beginning of each epoch.

```python good
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Dropout(0.2), nn.Linear(16, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(4):
    model.train()
    for _ in range(4):
        loss = (model(torch.randn(16, 4)) - 1).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        model(torch.randn(16, 4))
```

## When it is fine

Fine-tuning a small model on few samples, with Dropout off and old statistics kept.

## See also

[frozen-parameter](frozen-parameter.md): what does not get a gradient at all.
"""

from __future__ import annotations

from collections.abc import Iterator

from whygrad.evidence import Evidence
from whygrad.model import Finding, Module, Severity
from whygrad.rules._base import rule
from whygrad.rules._select import is_stepped, names
from whygrad.rules._text import counted

_SLUG = "eval-mode"
_MIN_STEPS = 5
_MIN_SHARE = 0.5
_NORMS = ("BatchNorm", "SyncBatchNorm", "InstanceNorm")


@rule(
    _SLUG,
    title="A model is trained in eval mode",
    severity=Severity.WARNING,
    since="0.1.0",
)
def check(evidence: Evidence) -> Iterator[Finding]:
    """Yield one finding for each root model that is trained in eval mode."""
    for root in evidence.modules:
        enough = root.taught_in_eval >= max(_MIN_STEPS, _MIN_SHARE * root.taught)
        if root.name or root.training is not False or not enough or not _is_trained(evidence, root):
            continue
        norms = [m for m in _resting(evidence, root) if m.type.startswith(_NORMS)]
        drops = [m for m in _resting(evidence, root) if m not in norms]
        if norms or drops:
            yield _finding(evidence, root, norms, drops)


def _is_trained(evidence: Evidence, root: Module) -> bool:
    return any(p.root == root.root and is_stepped(evidence, p) and p.gradient_steps for p in evidence.parameters)


def _resting(evidence: Evidence, root: Module) -> list[Module]:
    """Return the layers of a model that behave differently in eval mode, and are."""
    return [m for m in evidence.modules if m.root == root.root and m.training is False and m.has_modes]


def _finding(evidence: Evidence, root: Module, norms: list[Module], drops: list[Module]) -> Finding:
    switched = root.taught_in_eval < root.taught
    fresh = [module for module in norms if module.fresh]
    kinds = " and ".join(name for name, found in (("Dropout", drops), ("BatchNorm", norms)) if found)
    layers = counted(len(norms) + len(drops), "layer")
    held = [p for p in evidence.parameters if p.root == root.root and is_stepped(evidence, p)]
    state = f"its {layers} with {kinds} did not train"
    if fresh and not switched:
        state = f"no batch has set the statistics of its {counted(len(fresh), 'BatchNorm layer')}"
    return Finding(
        rule=_SLUG,
        severity=Severity.WARNING if switched or fresh else Severity.INFO,
        tensors=names(held),
        place=root.eval_at or root.made_at,
        message=(
            f"`{root.root or root.type}` was in eval mode in {root.taught_in_eval} of "
            f"{counted(root.taught, 'step')}: {state}"
        ),
        fix=f"Call `{root.root or 'model'}.train()` before each epoch, after every validation",
        evidence={
            "steps_in_eval_mode": root.taught_in_eval,
            "steps": root.taught,
            "dropout_layers": len(drops),
            "normalisation_layers": len(norms),
            "normalisation_layers_without_statistics": len(fresh),
        },
    )
