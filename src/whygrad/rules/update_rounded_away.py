"""100% of the elements of `norm.weight` (+4) did not change in 80 steps: in bfloat16 each update is rounded away.

## What it looks for

Weights in half precision that get gradients and are stepped, and stay as they are.

## Why it does not learn

A bfloat16 number has 8 significant bits, a float16 number 11. The weight after a step is the nearest number that can be
stored, and where the update is below half a unit in the last place, that is the weight before. Around 1.0 bfloat16 has
a spacing of 0.0078 above and 0.0039 below: an Adam step of 0.001 is lost, every time, whatever the gradient says. It
hits large weights first: the gains of normalisations, which start at 1, then embeddings.

## What it measures

For each parameter in bfloat16 or float16: at recorded steps, the share of its elements that a step did not change, less
the share whose gradient was exactly zero; and the share of a sample of it that still stands bit for bit where it began.
Both have to be at least 90%, over at least twenty steps of an optimizer whose rate is not zero.

The second share tells optimizers that carry what was rounded away (Kahan summation, stochastic rounding, float32
master weights) from those that lose it: there too most elements stay as they are in most steps, but hardly any stands
where it began. At rate 1e-5 plain AdamW in bfloat16 left 98% of a layer's elements where they were after 100 steps,
Kahan summation 45%. A gain of 1.0 had not got over the first half unit by then, so an optimizer that torch does not
bring is reported only if most of what it holds stands still.

It is an error where all that was looked at stands still, else a warning.

## Example

```python bad
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.LayerNorm(8), nn.Linear(8, 1)).to(torch.bfloat16)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.0)  # update-rounded-away
for _ in range(30):
    x = torch.randn(16, 4, dtype=torch.bfloat16)
    loss = (model(x) - 1).float().pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
```

## Fix

Keep the weights in float32 and compute in half precision under `torch.autocast`.

```python good
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.LayerNorm(8), nn.Linear(8, 1))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.0)
for _ in range(30):
    x = torch.randn(16, 4)
    loss = (model(x) - 1).float().pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
```

## When it is fine

A part that hardly has to move, in a fine-tuning at a rate that is meant to be small.

## See also

[update-too-small](update-too-small.md): in any precision. [fp16-underflow](fp16-underflow.md): the gradient is lost.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from whygrad.evidence import Evidence
from whygrad.model import Finding, Optimizer, Parameter, Role, Severity
from whygrad.rules._base import rule
from whygrad.rules._select import held_by, names
from whygrad.rules._text import counted, named, number

_SLUG = "update-rounded-away"
_MIN_STEPS = 20
_LOST = 0.9  # of the elements
_PLAIN = frozenset(
    {
        *("SGD", "Adam", "AdamW", "Adamax", "NAdam", "RAdam", "RMSprop", "Adagrad", "Adadelta", "Rprop", "ASGD"),
        *("Adafactor", "Muon", "SparseAdam", "LBFGS"),
    }
)  # of torch: they carry nothing of what is rounded away
_HALF = {"bfloat16": 2.0**-9, "float16": 2.0**-12}  # dtype -> half a unit in the last place, of a number just below 1


@rule(
    _SLUG,
    title="Updates are lost in the rounding of half precision weights",
    severity=Severity.ERROR,
    since="0.1.0",
    explains=("update-too-small", "decay-dominates", "symmetric-init"),
)
def check(evidence: Evidence) -> Iterator[Finding]:
    """Yield one finding for each optimizer whose updates are lost."""
    for optimizer in evidence.optimizers:
        held = held_by(evidence, optimizer) if 2 * optimizer.zero_rate_steps < optimizer.steps else ()
        lost = {p.id: share for p in held if (share := _lost(evidence, p)) >= _LOST}
        hit = [parameter for parameter in held if parameter.id in lost]
        if hit and (optimizer.type in _PLAIN or 2 * _elements(hit) > _elements(held)):
            yield _finding(evidence, optimizer, hit, lost)


def _elements(parameters: Sequence[Parameter]) -> int:
    return sum(parameter.numel for parameter in parameters)


def _lost(evidence: Evidence, parameter: Parameter) -> float:
    """Return the share of elements that do not move although they have a gradient; 0 where that is not known."""
    update, gradient = evidence.total(Role.UPDATE, parameter.id), evidence.total(Role.GRADIENT, parameter.id)
    if parameter.dtype not in _HALF or parameter.unmoved is None or update is None or gradient is None:
        return 0.0
    if update.steps < _MIN_STEPS or update.nonfinite_steps or gradient.nonfinite_steps:
        return 0.0
    return min(parameter.unmoved, update.statistics.zero_share - gradient.statistics.zero_share)


def _finding(
    evidence: Evidence, optimizer: Optimizer, parameters: Sequence[Parameter], lost: dict[int, float]
) -> Finding:
    worst = max(parameters, key=lambda parameter: lost[parameter.id])
    weight = evidence.total(Role.WEIGHT, worst.id)
    size = 0.0 if weight is None else weight.statistics.rms
    share = lost[worst.id]
    ordered = [worst, *(parameter for parameter in parameters if parameter is not worst)]
    made = worst.made_at
    return Finding(
        rule=_SLUG,
        severity=Severity.ERROR if share == 1 else Severity.WARNING,
        tensors=names(ordered),
        place=optimizer.made_at or optimizer.stepped_at,
        message=(
            f"{number(100 * share)}% of the elements of {named(names(ordered))} did not change in "
            f"{counted(worst.steps, 'step')}: in {worst.dtype} the updates are rounded away"
        ),
        fix="Keep the weights in float32 and compute in half precision under torch.autocast",
        evidence={
            "unchanged_share": share,
            "dtype": worst.dtype,
            "weight_rms": size,
            "smallest_update_that_counts": size * _HALF[worst.dtype],
            "learning_rate": max(optimizer.last_learning_rates, default=0.0),
            "steps": worst.steps,
            "parameters": len(parameters),
        },
        also=() if made is None else (made,),
    )
