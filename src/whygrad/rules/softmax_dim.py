"""the softmax behind `head.weight` (+1) runs along dimension 0 of [32, 7], its result is summed along dimension 1.

## What it looks for

A softmax along another dimension than the one whose entries compete: along the batch, or not along the classes.

## Why it does not learn

Softmax makes the entries along one dimension add up to 1. Along the batch, samples compete for one unit of probability:
what a sample gets depends on which others are in its batch, a bias that all samples share cancels, and the loss has a
floor that no weights can pass. `F.softmax(x)` without `dim` picks dimension 0 for one and three dimensions, 1 else.

## What it measures

In the traced steps, for each softmax that a backward pass led back to: its dimension, and the dimensions along which
its result, or the logarithm of it, is used up. Reported, if no use agrees with the softmax:

- classes are picked by `nll_loss`, `gather` or `log_p[range(n), labels]` along another dimension;
- it is compared with targets that do not learn, are not negative and add up to 1 along another dimension, but not along
  the softmax's;
- it runs along the batch (its size is that of dimension 0 of what the losses take, and no other dimension has that
  size), and its products with something are summed along another one, or it is divided by its sum along another one, as
  `Categorical(probs=...)` does: probabilities that add up over samples;
- scores of attention, a matrix product, are normalised along another dimension than the one that the next matrix
  product sums over.

Weights that add up to 1 along one dimension and pool along another are common otherwise: clusters, capsules, slots,
experts that choose their tokens. They are left alone.

## Example

```python bad
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(5):
    log_p = model(torch.randn(16, 4)).log_softmax(dim=0)  # softmax-dim
    loss = nn.functional.nll_loss(log_p, torch.randint(0, 3, (16,)))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
```

## Fix

Name the dimension of what competes; counted from the end, it stays right when a dimension is added in front.

```python good
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(5):
    log_p = model(torch.randn(16, 4)).log_softmax(dim=-1)
    loss = nn.functional.nll_loss(log_p, torch.randint(0, 3, (16,)))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
```

## When it is fine

Where the samples of a batch are to compete, as in a contrastive loss.

## See also

[single-logit-softmax](single-logit-softmax.md): the dimension has one entry.
"""

from __future__ import annotations

from collections.abc import Iterator

from whygrad.evidence import Evidence
from whygrad.model import Finding, Severity, SoftmaxCall
from whygrad.rules._base import rule
from whygrad.rules._losses import places, seen_often, shape, trained
from whygrad.rules._select import names
from whygrad.rules._text import named

_SLUG = "softmax-dim"
_PICKS = {
    "gather": "picked from",
    "getitem": "picked from",
    "nll_loss": "picked from",
    "target": "compared with targets",
}
_POOLS = {
    "sum": "summed after a product",
    "product": "summed in a product",
    "product, right": "summed in a product",
    "renormalised": "divided by its sum",
}
_ATTENTION = "product"


@rule(
    _SLUG,
    title="Softmax along the wrong dimension",
    severity=Severity.WARNING,
    since="0.1.0",
    explains=(
        *("zero-gradient", "vanishing-gradient", "constant-loss", "saturated-activation", "update-too-small"),
        *("decay-dominates", "shift-invariant-parameter"),
    ),
)
def check(evidence: Evidence) -> Iterator[Finding]:
    """Yield a finding for each such softmax."""
    for call in evidence.softmaxes:
        if not seen_often(call.calls) or call.largest < 2 or call.dim in call.used_dims:
            continue
        for dim, how in zip(call.used_dims, call.used_by, strict=True):
            what = _misuse(call, how)
            if what:
                yield _finding(evidence, call, dim, what)
                break


def _misuse(call: SoftmaxCall, how: str) -> str:
    """Return what is done along a dimension that is not the softmax's; "" where that may be meant."""
    if how in _PICKS:
        return _PICKS[how]
    if how == _ATTENTION and call.is_of_product:
        return "multiplied with values"
    return _POOLS.get(how, "") if _is_batch(call) else ""


def _is_batch(call: SoftmaxCall) -> bool:
    sizes = [size for axis, size in enumerate(call.shape) if axis != call.dim]
    return call.smallest == call.largest == call.batch and call.batch not in sizes


def _finding(evidence: Evidence, call: SoftmaxCall, dim: int, what: str) -> Finding:
    lines = places(call.place, call.used_at)
    near = names(trained(evidence, call.nearest) or trained(evidence, call.parameters))
    behind = f" behind {named(near)}" if near else ""
    return Finding(
        rule=_SLUG,
        severity=Severity.WARNING,
        tensors=near,
        place=lines[0] if lines else None,
        message=f"the {call.function}{behind} runs along dimension {call.dim} of {shape(call.shape)}, its result is "
        f"{what} along dimension {dim}",
        fix=f"Normalise along the dimension that is used: dim={dim - len(call.shape)}",
        evidence={
            "calls": call.calls,
            "dim": call.dim,
            "used_dim": dim,
            "size": call.largest,
            "shape": shape(call.shape),
            "batch": call.batch or 0,
        },
        also=lines[1:],
    )
