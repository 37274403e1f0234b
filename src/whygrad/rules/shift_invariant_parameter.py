"""the gradient of `stage1.0.bias` (+1) is zero up to rounding, at most 4e-07 of its weight's: the shift is taken out.

## What it looks for

Biases that shift what a later normalisation, a softmax or a difference shifts back.

## Why it does not learn

BatchNorm subtracts the mean of each channel, LayerNorm that of each sample, a softmax does not change when all scores
rise by the same amount. What is added before them cancels, so its derivative is zero in exact arithmetic and rounding
noise in the machine. Adam scales that noise up and lets the bias drift; nothing else happens.

## What it measures

The gradient of every bias against that of the weight of the same layer, as RMS. A bias is reported when the ratio is
below 0.0001 at each of at least five sampled steps (measured: at most 0.00005 for 282 biases in front of BatchNorm and
softmax, at least 0.001 in the median for all others). Large inputs make that ratio small too, so the gradients of the
outputs, which a bias adds up, have to cancel to 0.0001 as well. It is never more than an info: no harm is done.

## Example

```python bad
import torch
from torch import nn

torch.manual_seed(0)
hidden = nn.Linear(8, 16)  # shift-invariant-parameter
model = nn.Sequential(hidden, nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
for _ in range(10):
    x = torch.randn(32, 8)
    loss = (model(x).squeeze(1) - x[:, 0]).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
```

## Fix

Leave the bias out; the normalisation has one of its own.

```python good
import torch
from torch import nn

torch.manual_seed(0)
hidden = nn.Linear(8, 16, bias=False)
model = nn.Sequential(hidden, nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
for _ in range(10):
    x = torch.randn(32, 8)
    loss = (model(x).squeeze(1) - x[:, 0]).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
```

## When it is fine

Always: it costs a little memory, and in eval mode a bias that drifted is taken out by the running mean as well.

## See also

[zero-gradient](zero-gradient.md): zeros that do harm.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from whygrad.evidence import Evidence
from whygrad.model import Finding, Parameter, Place, Role, Severity
from whygrad.rules._base import rule
from whygrad.rules._select import by_line, holder, names
from whygrad.rules._sizes import Samples, is_taught, outputs_by, samples
from whygrad.rules._text import named, number

_SLUG = "shift-invariant-parameter"
_MIN_STEPS = 5
_SHIFT = 1e-4  # of the weight's gradient


@rule(_SLUG, title="A later operation takes a bias out again", severity=Severity.INFO, since="0.1.0")
def check(evidence: Evidence) -> Iterator[Finding]:
    """Yield the biases that shift what is shifted back, by the line that made them."""
    gradients = samples(evidence, Role.GRADIENT)
    weights = {_layer(p): p for p in evidence.parameters if p.attribute == "weight" and len(p.shape) > 1}
    found: dict[int, float] = {}
    for parameter in evidence.parameters_in_order:
        weight = weights.get(_layer(parameter)) if _is_bias(evidence, parameter) else None
        ratios = [] if weight is None else _against(gradients, parameter, weight)
        if len(ratios) >= _MIN_STEPS and max(ratios) < _SHIFT and _cancels(evidence, parameter):
            found[parameter.id] = max(ratios)
    hit = [parameter for parameter in evidence.parameters_in_order if parameter.id in found]
    for place, group in by_line(hit, lambda p: p.made_at):
        yield _finding(group, place, max(found[parameter.id] for parameter in group))


def _layer(parameter: Parameter) -> tuple[str, str, int | None]:
    return parameter.root, parameter.module, parameter.order


def _is_bias(evidence: Evidence, parameter: Parameter) -> bool:
    return parameter.attribute == "bias" and len(parameter.shape) == 1 and is_taught(evidence, parameter)


def _against(gradients: Samples, bias: Parameter, weight: Parameter) -> list[float]:
    mine, others = gradients.get(bias.id, {}), gradients.get(weight.id, {})
    return [mine[s].rms / others[s].rms for s in mine if s in others and others[s].rms > 0]


def _cancels(evidence: Evidence, bias: Parameter) -> bool:
    """Return whether the gradients of an output, which a bias adds up, cancel: large inputs make a bias small too."""
    total = evidence.total(Role.GRADIENT, bias.id)
    outputs = outputs_by(evidence, holder(evidence, bias))
    arriving = [evidence.total(Role.OUTPUT_GRADIENT, output.id) for output in outputs]
    summed = sum(each.statistics.sum_abs for each in arriving if each is not None)
    return total is None or not summed or total.statistics.sum_abs < _SHIFT * summed


def _finding(group: Sequence[Parameter], place: Place | None, ratio: float) -> Finding:
    return Finding(
        rule=_SLUG,
        severity=Severity.INFO,
        tensors=names(group),
        place=place,
        message=f"the gradient of {named(names(group))} is zero up to rounding, at most {number(ratio)} of its weight's"
        ": a normalisation, a softmax or a difference takes the shift out again",
        fix="Make the layer with bias=False: nothing is lost",
        evidence={"largest_ratio": ratio, "parameters": len(group)},
    )
