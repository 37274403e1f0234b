"""the gradient of `stem.weight` (+13) is 3e-07 of that of the last layers: it shrinks from layer to layer.

## What it looks for

A gradient that gets smaller from layer to layer on its way back, until the layers nearest to the input get next to
nothing of what the layers nearest to the loss get.

## Why it does not learn

Backward multiplies by the slope of every activation and by every weight on its way. The slope of a sigmoid is at most
0.25, that of a saturated tanh is near 0, a ReLU passes half of what arrives, and default weights do not make up for it:
the factors multiply, and the gradient falls exponentially with depth. The last layers then learn on top of layers that
stay as they were initialised. Adam scales the small gradients up again, noise included, until they reach its eps.

## What it measures

For the weights of layers (matrices and kernels, no biases, no embedding tables) of one model in forward order, at each
of up to 32 sampled steps: the RMS of the gradient, and its L2 norm times that of the weight, which no change of units
alters. Both are compared with the median over the last third of the layers. Every layer of the first third must stay
below 0.005 in the first and 0.02 in the second, in the median of all steps and of the later half; each third must get
at most half of what the next one gets, and three quarters of all steps from one layer to the next must go the same way.
It takes four layers. Layers are compared within a step, so a loss that is near its floor or scaled does not matter.
Where the loss falls by half all the same, it is an info.

The ratio of the first third to the last one (RMS of the gradient; L2 norm of gradient times weight), median of 60 steps
with SGD (ResNets: 40), default initialisation unless said otherwise, and the last loss (first: 1.4, ResNets 1.6):

| network | 5 weights | 10 weights | 20 weights | last losses |
|---|---|---|---|---|
| MLP, ReLU | 0.29; 2.4 | 0.014; 0.017 | 9e-06; 9e-06 | 0.46, 1.35, 1.35 |
| MLP, ReLU, Kaiming | 0.28; 5.3 | 2.0; 1.9 | 1.9; 1.8 | 0.51, 0.53, 1.14 |
| MLP, GELU | 0.11; 1.1 | 0.0024; 0.0024 | 7e-08; 7e-08 | 1.30, 1.35, 1.35 |
| MLP, tanh | 1.2; 5.9 | 0.28; 0.43 | 0.0013; 0.0015 | 0.24, 0.93, 1.35 |
| MLP, tanh, weights of std 0.01 | 0.0019; 0.0014 | 4e-08; 4e-08 | 3e-16; 3e-16 | 1.35, 1.35, 1.35 |
| MLP, sigmoid | 2e-04; 0.0021 | 9e-07; 9e-07 | 2e-12; 2e-12 | 1.43, 1.43, 1.45 |
| MLP, sigmoid, BatchNorm | 0.37; 1.4 | 1.5; 1.6 | 1.2; 1.2 | 0.35, 0.38, 0.44 |
| ResNet, BatchNorm | | 2.1; 1.7 | 3.7; 3.2 | 0.84, 0.48 |
| ResNet, neither shortcuts nor BatchNorm | | 0.002; 0.003 | 7e-07; 7e-07 | 1.62, 1.61 |

RNN, LSTM and GRU of one to three layers lie between 0.07 and 1, transformers of 2 to 12 layers between 0.13 and 1.3.
None of the networks that learn comes near both limits. Of 47 programs that train well, PPO with a small last layer does
most (0.019; 0.041), then a diffusion model with a last layer that starts at zero (0.012; 0.73).

On a batch that is always the same, the last layers come to rest too, and the ratios say nothing any more. Then the way
forward tells: how much the outputs of a layer differ between samples. Where the last layer's differ by less than 0.01
of the first one's, each third by at most half of the one before it, and the loss of the last quarter is still 0.9 of
that of the first, the layers only learn the mean. (Five to eleven sigmoid layers: 0.0004 to 0.00005, ten ReLU layers:
0.0009, all at ln 2 after 150 steps; of 47 programs that train at least 0.1.)

Over time: of a module that is called at least four times in a step, and of the sequence that enters a recurrent layer,
the gradient at the first call against that at the last. Below 0.0001 in the median of at least five steps, while the
loss stands still as above, the first inputs cannot be learned from. A loss that falls without them is no fault. (47
programs that train: at least 0.014; a plain RNN over 40 symbols: 4e-13.)

Also reported, from two layers on: a loss that hardly moves although it is not near zero, while at every step changing
any weight, or what the last layer returns, by its own size would change the loss by less than a millionth.

## Example

```python bad
import torch
from torch import nn

torch.manual_seed(0)
layers = []
for _ in range(7):
    layers += [nn.Linear(16, 16), nn.Sigmoid()]  # vanishing-gradient
model = nn.Sequential(*layers, nn.Linear(16, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(20):
    x = torch.randn(32, 16)
    loss = nn.functional.cross_entropy(model(x), (x[:, 0] > 0).long())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
```

## Fix

An activation whose slope is 1 where it is active, with weights initialised for it, a shortcut around every block, or a
normalisation in every block.

```python good
import torch
from torch import nn

torch.manual_seed(0)
layers = []
for _ in range(7):
    layers += [nn.Linear(16, 16), nn.BatchNorm1d(16), nn.ReLU()]
model = nn.Sequential(*layers, nn.Linear(16, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(20):
    x = torch.randn(32, 16)
    loss = nn.functional.cross_entropy(model(x), (x[:, 0] > 0).long())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
```

## When it is fine

The first steps behind a head that starts at zero, which the median passes over. Layers that are to move slowly.

## See also

[dead-relu](dead-relu.md) and [zero-gradient](zero-gradient.md): nothing arrives at all.
[exploding-gradient](exploding-gradient.md): the other direction.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from whygrad.evidence import Evidence
from whygrad.model import Finding, Parameter, Role, Severity, Statistics
from whygrad.rules._base import rule
from whygrad.rules._select import holder, names
from whygrad.rules._sequences import forgotten
from whygrad.rules._sizes import Samples, broken_at, is_layer, line_of, median, models, outputs_by, samples
from whygrad.rules._stillness import is_standing_still, variation_profile
from whygrad.rules._text import counted, named, number

_SLUG = "vanishing-gradient"
_MIN_LAYERS = 4
_MIN_STEPS = 5
_STARVED = 5e-3  # of the last third's gradients
_IDLE = 2e-2  # of the last third's gradients times weights
_FALLING = 0.75  # of the pairs of neighbours
_LEVEL = 1.5  # neighbours as far apart as this are level
_STEP = 0.5  # of the next third
_LEARNS = 0.5  # of the loss at the start
_MILLIONTH = 1e-6
_BLURRED = 0.01  # of the difference between samples behind the first layer
_STILL = 0.01  # of the loss
_SATURATING = ("Sigmoid", "Tanh", "Softsign", "Hardsigmoid", "Hardtanh", "LogSigmoid")


@dataclass(frozen=True, slots=True)
class _Fall:
    """How small the gradients of layers are against those of the last third, in forward order."""

    layers: tuple[Parameter, ...]
    sizes: tuple[float, ...]  # RMS of the gradient
    effects: tuple[float, ...]  # L2 norm of the gradient times that of the weight
    steps: int


@rule(
    _SLUG,
    title="The gradient shrinks from layer to layer",
    severity=Severity.WARNING,
    since="0.1.0",
    explains=("update-too-small", "update-rounded-away", "decay-dominates", "fp16-underflow"),
)
def check(evidence: Evidence) -> Iterator[Finding]:
    """Yield one finding for each model whose first layers are starved."""
    before = broken_at(evidence)
    gradients, weights = (samples(evidence, role, before=before) for role in (Role.GRADIENT, Role.WEIGHT))
    for model in models(evidence):
        layers = tuple(parameter for parameter in model if is_layer(parameter))
        steps = _common_steps(layers, gradients, weights)
        if len(steps) < _MIN_STEPS:
            continue
        fall = _fall(layers, steps, gradients, weights)
        late = _fall(layers, steps[len(steps) // 2 :], gradients, weights)
        if len(layers) >= _MIN_LAYERS and _is_vanishing(fall) and _is_vanishing(late):
            yield _finding(evidence, fall)
        elif len(layers) >= _MIN_LAYERS and _is_blurred(profile := variation_profile(evidence, layers)):
            if is_standing_still(evidence, layers):
                yield _blur(evidence, layers, profile, fall)
        elif len(layers) > 1 and _is_collapsed(evidence, layers, steps, gradients, weights):
            yield _collapse(evidence, layers, steps, gradients)
    yield from forgotten(evidence)


def _common_steps(layers: Sequence[Parameter], gradients: Samples, weights: Samples) -> list[int]:
    """Return the sampled steps at which every layer had a gradient that was not zero."""
    if not layers or any(layer.id not in gradients or layer.id not in weights for layer in layers):
        return []
    steps = sorted(gradients[layers[0].id])
    return [s for s in steps if all(_size(gradients, layer, s) > 0 and s in weights[layer.id] for layer in layers)]


def _size(measured: Samples, layer: Parameter, step: int) -> float:
    found = measured[layer.id].get(step)
    return found.rms if found is not None else 0.0


def _fall(layers: tuple[Parameter, ...], steps: Sequence[int], gradients: Samples, weights: Samples) -> _Fall:
    sizes = [[gradients[layer.id][step].rms for layer in layers] for step in steps]
    effects = [[_effect(gradients[layer.id][step], weights[layer.id][step]) for layer in layers] for step in steps]
    return _Fall(layers, _against_last(sizes), _against_last(effects), len(steps))


def _effect(gradient: Statistics, weight: Statistics) -> float:
    return gradient.l2 * weight.l2


def _against_last(values: Sequence[Sequence[float]]) -> tuple[float, ...]:
    """Return, layer by layer, the median over the steps of a size against the last third's in the same step."""
    tops = [median(row[-_third(row) :]) for row in values]
    return tuple(
        median(row[position] / top for row, top in zip(values, tops, strict=True) if top > 0)
        for position in range(len(values[0]))
    )


def _third(layers: Sequence[object]) -> int:
    return max(1, len(layers) // 3)


def _is_vanishing(fall: _Fall) -> bool:
    third = _third(fall.layers)
    starved = max(fall.sizes[:third]) < _STARVED and max(fall.effects[:third]) < _IDLE
    falling = sum(nearer < farther * _LEVEL for nearer, farther in pairwise(fall.sizes))
    first, middle, last = (median(part) for part in _thirds(fall.sizes))
    gradual = first < _STEP * middle < _STEP**2 * last
    return starved and gradual and falling >= _FALLING * (len(fall.sizes) - 1)


def _thirds(sizes: Sequence[float]) -> tuple[Sequence[float], ...]:
    third = _third(sizes)
    return sizes[:third], sizes[third:-third], sizes[-third:]


def _finding(evidence: Evidence, fall: _Fall) -> Finding:
    starved = [
        layer
        for layer, size, effect in zip(fall.layers, fall.sizes, fall.effects, strict=True)
        if size < _STARVED and effect < _IDLE
    ]
    ratio = median(fall.sizes[: _third(fall.layers)])
    severity = Severity.INFO if _is_learning(evidence, fall.layers) else Severity.WARNING
    activation = _activation(evidence, fall.layers[0].root)
    shrinks = f"it shrinks from layer to layer through {counted(len(fall.layers), 'layer')}"
    return Finding(
        rule=_SLUG,
        severity=severity,
        tensors=names(starved),
        place=line_of(evidence, fall.layers),
        message=f"the gradient of {named(names(starved))} is {number(ratio)} of that of the last layers: {shrinks}",
        fix=f"Replace {activation} by ReLU or GELU, or normalise between the layers"
        if activation
        else "Put a shortcut around each block, or a normalisation into it, or initialise for the activation",
        evidence={
            "ratio": ratio,
            "ratio_with_weight": median(fall.effects[: _third(fall.layers)]),
            "smallest_ratio": min(fall.sizes),
            "per_layer": ratio ** (1 / max(1, len(fall.layers) - _third(fall.layers))),
            "layers": len(fall.layers),
            "sampled_steps": fall.steps,
            "profile": list(fall.sizes),
        },
    )


def _is_learning(evidence: Evidence, layers: Sequence[Parameter]) -> bool:
    """Return whether the loss of a model fell all the same."""
    steps = (s for s in evidence.steps if s.optimizer is None or s.optimizer in layers[0].optimizers)
    losses = [step.loss for step in evidence.evenly(steps) if step.loss is not None]
    quarter = len(losses) // 4
    return quarter > 0 and median(losses[-quarter:]) < _LEARNS * median(losses[:quarter])


def _activation(evidence: Evidence, root: str) -> str:
    """Return the saturating activation that the model has most of, if it is a module."""
    types = [module.type for module in evidence.modules if module.root == root and module.type in _SATURATING]
    return max(types, key=types.count, default="")


# -- what tells the samples apart gets lost ----------------------------------------------------------------------------


def _is_blurred(profile: Sequence[float]) -> bool:
    """Return whether the samples become more alike from layer to layer, until the outputs hardly differ."""
    if len(profile) < _MIN_LAYERS:
        return False
    first, middle, last = (median(part) for part in _thirds(profile))
    return profile[-1] < _BLURRED * profile[0] and middle < _STEP * first and last < _STEP * middle


def _blur(evidence: Evidence, layers: Sequence[Parameter], profile: Sequence[float], fall: _Fall) -> Finding:
    ratio = profile[-1] / profile[0]
    activation = _activation(evidence, layers[0].root)
    return Finding(
        rule=_SLUG,
        severity=Severity.WARNING,
        tensors=names(layers),
        place=line_of(evidence, layers),
        message=f"behind {counted(len(profile), 'layer')} samples differ by {number(ratio)} of what they do before, "
        f"and the loss stands still: {named(names(layers))} get the gradient of one mean output",
        fix=f"Replace {activation} by ReLU or GELU, or normalise between the layers"
        if activation
        else "Put a shortcut around each block, or a normalisation into it, or initialise for the activation",
        evidence={"ratio": ratio, "profile": list(profile), "gradients": list(fall.sizes), "sampled_steps": fall.steps},
    )


# -- nothing gets through at all -----------------------------------------------------------------------------------


def _is_collapsed(
    evidence: Evidence, layers: Sequence[Parameter], steps: Sequence[int], gradients: Samples, weights: Samples
) -> bool:
    loss = {step.id: abs(step.loss) for step in evidence.steps if step.loss is not None}
    known = [step for step in steps if loss.get(step, 0.0) > 0]
    if len(known) < len(steps) or not _is_still([loss[step] for step in steps]):
        return False
    effects = (_effect(gradients[p.id][s], weights[p.id][s]) / loss[s] for p in layers for s in steps)
    return max(effects) < _MILLIONTH and _arrives_small(evidence, layers[-1], loss)


def _arrives_small(evidence: Evidence, layer: Parameter, loss: Mapping[int, float]) -> bool:
    """Return whether the gradient of a layer's output is as small, so that it was not clipping that made it so."""
    outputs = outputs_by(evidence, holder(evidence, layer))
    arriving, values = (samples(evidence, role) for role in (Role.OUTPUT_GRADIENT, Role.OUTPUT))
    both = [(arriving[o.id], values[o.id]) for o in outputs if o.id in arriving and o.id in values]
    effects = [_effect(mine[s], other[s]) / loss[s] for mine, other in both for s in mine if s in other and loss.get(s)]
    return bool(effects) and max(effects) < _MILLIONTH


def _is_still(losses: Sequence[float]) -> bool:
    quarter = max(1, len(losses) // 4)
    begin, end = median(losses[:quarter]), median(losses[-quarter:])
    return abs(begin - end) < _STILL * begin


def _collapse(evidence: Evidence, layers: Sequence[Parameter], steps: Sequence[int], gradients: Samples) -> Finding:
    largest = max(gradients[layer.id][step].rms for layer in layers for step in steps)
    return Finding(
        rule=_SLUG,
        severity=Severity.WARNING,
        tensors=names(layers),
        place=line_of(evidence, layers),
        message=f"the gradient of {named(names(layers))} is at most {number(largest)} at all "
        f"{counted(len(steps), 'sampled step')}: changing any weight by its own size would not change the loss",
        fix="Look for a saturated output, or weights that start too small or too large",
        evidence={"largest_rms": largest, "sampled_steps": len(steps), "layers": len(layers)},
    )
