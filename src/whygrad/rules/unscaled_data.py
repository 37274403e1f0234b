"""the 4 columns of the target have standard deviations from 0.31 to 2.6e+03: `head.weight` learns the largest.

## What it looks for

Targets whose columns differ in scale by orders of magnitude, and inputs far from the size that weights start for.

## Why it does not learn

A squared error grows with the square of the unit: next to a column in thousands, one in tenths is nothing to the loss
or to the gradient, and what all columns share learns for the largest alone. Weights start for inputs of about unit
size. Inputs in hundreds make sums in hundreds: squashing functions are flat there, the first layer's gradient is a
hundred times as large as all others, and no learning rate fits them all.

## What it measures

At the first batch of at least eight samples, the standard deviation of each column (dimension 1) of what is compared
with a model's output: `F.mse_loss`, `F.l1_loss`, `F.smooth_l1_loss`, `F.huber_loss` or a difference. Columns that do
not vary, or hold only 0 and 1, do not count. A ratio of more than 100 between the largest and the smallest is reported:
the squares then differ by 10,000. A difference that is multiplied or divided by something with more than one element is
weighed already, and left alone.

For inputs, the largest and the mean size of what enters a Linear or a convolution that is to learn, in recorded steps.
Size alone is no fault: it is reported where the root mean square is above 20, no normalisation follows that layer, and
the loss at the end is at least 0.9 of that at the start.

In 47 programs that train, the columns of a target differed by at most 10 times, and the root mean square of what
entered a layer from outside was at most 5.4.

## Example

```python bad
import torch
from torch import nn

torch.manual_seed(0)
x = torch.rand(256, 6)
price = 50_000.0 + 200_000.0 * x[:, 0]
rooms = 1.0 + 4.0 * x[:, 1]
target = torch.stack([price, rooms], dim=1)  # unscaled-data
model = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for batch in torch.arange(256).split(16):
    loss = nn.functional.mse_loss(model(x[batch]), target[batch])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
```

## Fix

Standardise each column with its own mean and standard deviation, and undo it in the prediction.

```python good
import torch
from torch import nn

torch.manual_seed(0)
x = torch.rand(256, 6)
price = 50_000.0 + 200_000.0 * x[:, 0]
rooms = 1.0 + 4.0 * x[:, 1]
target = torch.stack([price, rooms], dim=1)
target = (target - target.mean(dim=0)) / target.std(dim=0)
model = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for batch in torch.arange(256).split(16):
    loss = nn.functional.mse_loss(model(x[batch]), target[batch])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
```

## When it is fine

Where only the largest column matters, or a loss of your own brings the columns to one scale.

## See also

[constant-input](constant-input.md), [saturated-activation](saturated-activation.md).
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from whygrad.evidence import Evidence
from whygrad.model import Feed, Finding, Parameter, Place, Severity
from whygrad.rules._base import rule
from whygrad.rules._feeds import feeds_by_root, learning
from whygrad.rules._select import names
from whygrad.rules._sizes import is_layer, is_taught
from whygrad.rules._stillness import is_standing_still
from whygrad.rules._text import named, number

_SLUG = "unscaled-data"
_COLUMNS = 100.0  # largest against smallest standard deviation
_LARGE = 20.0  # root mean square of an input
_NORMS = ("Norm",)
_LAYERS = ("Linear", "Conv")


@rule(
    _SLUG,
    title="What is fed has no common scale",
    severity=Severity.WARNING,
    since="0.1.0",
    explains=("saturated-activation", "exploding-gradient", "vanishing-gradient", "dead-relu", "update-too-small"),
)
def check(evidence: Evidence) -> Iterator[Finding]:
    """Yield a finding for each target whose columns differ too much, and each model with inputs that are too large."""
    for feed in evidence.feeds:
        if feed.kind == "target" and feed.largest_std > _COLUMNS * feed.smallest_std:
            yield _columns(evidence, feed)
    for root, feeds in feeds_by_root(evidence).items():
        large = [feed for feed in feeds if _is_large(evidence, feed)]
        if large and is_standing_still(evidence, learning(evidence, root)):
            yield _inputs(evidence, root, large[0])


def _columns(evidence: Evidence, feed: Feed) -> Finding:
    hit = _last_layer(evidence, feed)
    ratio = feed.largest_std / feed.smallest_std
    place = feed.made_at or feed.taken_at
    return Finding(
        rule=_SLUG,
        severity=Severity.WARNING,
        tensors=names(hit),
        place=place,
        message=f"the {feed.shape[1]} columns of the target have standard deviations from {number(feed.smallest_std)} "
        f"to {number(feed.largest_std)}: {named(names(hit)) if hit else 'the model'} learns for the largest alone",
        fix="Standardise each column of the target with its own mean and standard deviation",
        evidence={
            "smallest_std": feed.smallest_std,
            "largest_std": feed.largest_std,
            "ratio": ratio,
            "columns": feed.shape[1],
        },
        also=() if feed.taken_at is None or feed.taken_at == place else (feed.taken_at,),
    )


def _last_layer(evidence: Evidence, feed: Feed) -> list[Parameter]:
    """Return the parameters of the layer that gives as many columns as the target has, else of the last one."""
    taught = [p for p in evidence.parameters_in_order if is_taught(evidence, p) and p.order is not None]
    layers = [p for p in taught if is_layer(p)]
    fitting = [p for p in layers if p.shape[0] == feed.shape[1]] or layers
    return [p for p in taught if fitting and (p.root, p.module) == (fitting[-1].root, fitting[-1].module)]


# -- inputs ------------------------------------------------------------------------------------------------------------


def _is_large(evidence: Evidence, feed: Feed) -> bool:
    """Return whether numbers far above 1 enter a layer that multiplies them, and nothing brings them back."""
    module = None if feed.module is None else evidence.module_by_id.get(feed.module)
    if feed.kind != "layer" or module is None or not module.type.startswith(_LAYERS) or math.isnan(feed.std):
        return False
    later = [m for m in evidence.modules if m.root == module.root and (m.order or 0) > (module.order or 0)]
    following = min(later, key=lambda each: each.order or 0, default=None)
    normed = following is not None and any(word in following.type for word in _NORMS)
    return math.hypot(feed.mean, feed.std) > _LARGE and not normed


def _inputs(evidence: Evidence, root: str, feed: Feed) -> Finding:
    module = None if feed.module is None else evidence.module_by_id.get(feed.module)
    order = None if module is None else module.order
    hit = [parameter for parameter in learning(evidence, root) if parameter.order == order]
    place: Place | None = feed.made_at or feed.taken_at
    size = math.hypot(feed.mean, feed.std)
    return Finding(
        rule=_SLUG,
        severity=Severity.WARNING,
        tensors=names(hit),
        place=place,
        message=f"what enters {named(names(hit)) if hit else 'the model'} lies between {number(feed.low)} and "
        f"{number(feed.high)} (root mean square {number(size)}), and the loss stands still",
        fix="Scale the inputs to about unit size, each column with its own mean and standard deviation",
        evidence={"rms": size, "low": feed.low, "high": feed.high, "mean": feed.mean, "std": feed.std},
        also=() if feed.taken_at is None or feed.taken_at == place else (feed.taken_at,),
    )
