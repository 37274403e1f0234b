"""`mse_loss` compares each of 32 predictions with all 32 targets: [32, 1] against [32] broadcasts to [32, 32].

## What it looks for

A prediction and a target, or two factors of a loss, of shapes [N, 1] and [N]: broadcasting makes [N, N] of them.

## Why it does not learn

Broadcasting aligns dimensions from the right. The one column is spread over N columns, the flat vector over N rows, and
each prediction is compared with the target of every sample. Nothing raises, and the loss is a number as ever. It is
smallest where all predictions are the mean of all targets, and that is what the model learns. For a weight or an
advantage the mean over the matrix is the product of two means: it says nothing about single samples any more.

## What it measures

In the traced steps: the shapes that `mse_loss`, `l1_loss`, `smooth_l1_loss`, `huber_loss` and the binary cross
entropies are fed with, reported if they broadcast to more elements than either has. And each sum, difference, product
and quotient of a tensor [..., N, 1] and one [..., N] with N > 1 on the way to the loss, the making of targets included.

A matrix of all pairs may be what is meant, so these are reported only if nothing treats the result as a matrix: nothing
of its size is combined with it, and nothing is summed, picked or maximised along one of its dimensions before it
becomes one number. `x[:, None] - x`, with the dimension added on the same line, is a pairwise difference on purpose.

## Example

```python bad
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(5):
    x = torch.randn(16, 4)
    loss = ((model(x) - x.sum(dim=1)) ** 2).mean()  # loss-broadcast
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
```

## Fix

Give both the same shape: `squeeze(-1)` the one or `unsqueeze(-1)` the other.

```python good
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(5):
    x = torch.randn(16, 4)
    loss = ((model(x).squeeze(-1) - x.sum(dim=1)) ** 2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
```

## When it is fine

Where all pairs are to be compared.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from whygrad.evidence import Evidence
from whygrad.model import Event, Finding, LossCall, Severity
from whygrad.rules._base import rule
from whygrad.rules._losses import elements, ids_in, seen_often, shape, trained
from whygrad.rules._select import names

_SLUG = "loss-broadcast"
_OUTER = "outer_broadcast"  # event: a flat vector was spread over a column vector on the way to the loss
_FIX = "Give both the same shape: squeeze(-1) the one, or unsqueeze(-1) the other"


@rule(
    _SLUG,
    title="Prediction and target broadcast against each other",
    severity=Severity.ERROR,
    since="0.1.0",
    explains=(
        *("vanishing-gradient", "zero-gradient", "update-too-small", "constant-loss", "activation-on-output"),
        *("dead-relu", "decay-dominates"),
    ),
)
def check(evidence: Evidence) -> Iterator[Finding]:
    """Yield a finding for each line that makes a matrix of two vectors."""
    for call in evidence.losses:
        if seen_often(call.calls) and _is_spread(call):
            yield _of_loss(evidence, call)
    for event in evidence.events_of(_OUTER):
        if seen_often(event.count):
            yield _of_operation(evidence, event)


def _is_spread(call: LossCall) -> bool:
    if "loss" not in call.function and "entropy" not in call.function:
        return False  # a difference written by hand: the event says more about it
    return elements(call.result_shape) > max(elements(call.shape), elements(call.target_shape))


def _of_loss(evidence: Evidence, call: LossCall) -> Finding:
    samples = call.shape[0] if call.shape else 1
    return Finding(
        rule=_SLUG,
        severity=Severity.ERROR,
        tensors=names(trained(evidence, call.parameters)),
        place=call.place,
        message=f"`{call.function}` compares each of {samples} predictions with all targets: {shape(call.shape)} "
        f"against {shape(call.target_shape)} broadcasts to {shape(call.result_shape)}",
        fix=_FIX,
        evidence={"calls": call.calls, **_shapes(call.shape, call.target_shape, call.result_shape)},
    )


def _of_operation(evidence: Evidence, event: Event) -> Finding:
    one, other = event.detail["shapes"]
    result = event.detail["result"]
    return Finding(
        rule=_SLUG,
        severity=Severity.ERROR,
        tensors=names(trained(evidence, _learning(evidence, event))),
        place=event.place,
        message=f"`{event.subject}` on the way to the loss combines each sample with all others: {shape(one)} and "
        f"{shape(other)} broadcast to {shape(result)}",
        fix=_FIX,
        evidence={"calls": event.count, **_shapes(one, other, result)},
    )


def _shapes(one: Sequence[int], other: Sequence[int], result: Sequence[int]) -> dict[str, str]:
    return {"input": shape(one), "other": shape(other), "result": shape(result)}


def _learning(evidence: Evidence, event: Event) -> Sequence[int]:
    """Return the parameters that the loss behind the matrix trains; of a target, those the loss compares with it."""
    ids = ids_in(event)
    if event.detail.get("learns"):
        return ids
    return tuple(number for call in evidence.losses for number in call.parameters)
