"""`binary_cross_entropy_with_logits` is fed with targets between -1 and 1, where it takes 0 to 1.

## What it looks for

Targets outside of what the loss function is made for.

## Why it does not learn

`binary_cross_entropy` takes targets from 0 to 1. Given -1 or 255 nothing raises: the loss has no lower bound any more,
and the logits of such samples grow without end. `cross_entropy` with targets of its input's shape takes probabilities.
The hinge and margin losses take 1 and -1; given 0 in place of -1 they lose those samples, whose term is a constant.
`kl_div` takes probabilities as its target, log-probabilities only with `log_target=True`.

## What it measures

In the traced steps, the smallest and the largest target, for each call of these losses that a backward pass led back
to, and the share of targets below 0 and above 1 by more than 0.001. A single target outside is reported, for none has
a meaning; `cross_entropy` and `kl_div` may be weighted by counts, so there only negative ones are. For the losses of 1
and -1, targets whose smallest one is 0 in each of at least three calls are reported.

## Example

```python bad
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(5):
    x = torch.randn(16, 4)
    loss = nn.functional.binary_cross_entropy_with_logits(model(x)[:, 0], x[:, 0].sign())  # target-mismatch
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
```

## Fix

Bring the targets into the range: `(y + 1) / 2` for -1 and 1, `y / 255` for bytes, `2 * y - 1` for a hinge loss.

```python good
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(5):
    x = torch.randn(16, 4)
    loss = nn.functional.binary_cross_entropy_with_logits(model(x)[:, 0], (x[:, 0] > 0).float())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
```

## When it is fine

Hardly ever: the loss is no distance then.

## See also

[scrambled-reshape](scrambled-reshape.md): targets that belong to other positions.
"""

from __future__ import annotations

from collections.abc import Iterator

from whygrad.evidence import Evidence
from whygrad.model import Finding, LossCall, Severity
from whygrad.rules._base import rule
from whygrad.rules._losses import seen_often, trained
from whygrad.rules._select import names
from whygrad.rules._text import number

_SLUG = "target-mismatch"
_OF_UNIT = ("binary_cross_entropy", "binary_cross_entropy_with_logits")
_OF_WEIGHTS = ("cross_entropy", "kl_div")
_OF_SIGNS = ("soft_margin_loss", "hinge_embedding_loss", "margin_ranking_loss", "cosine_embedding_loss")


@rule(
    _SLUG,
    title="Targets outside of what the loss takes",
    severity=Severity.ERROR,
    since="0.1.0",
    explains=(
        *("exploding-gradient", "zero-gradient", "constant-loss", "vanishing-gradient", "update-too-large"),
        *("activation-on-output", "nonfinite-gradient", "unscaled-data"),
    ),
)
def check(evidence: Evidence) -> Iterator[Finding]:
    """Yield a finding for each such call."""
    for call in evidence.losses:
        wanted = _wanted(call)
        if seen_often(call.calls) and wanted:
            yield _finding(evidence, call, wanted)


def _wanted(call: LossCall) -> str:
    """Return what a loss takes that is fed with something else; "" if it gets what it takes."""
    if call.function in _OF_UNIT:
        return "0 to 1" if call.target_negative + call.target_above_one > 0 else ""
    if call.function in _OF_WEIGHTS and not call.target_is_index:
        return "0 to 1" if call.target_negative > 0 else ""
    return "1 and -1" if call.function in _OF_SIGNS and call.target_low == 0.0 < call.target_high else ""


def _finding(evidence: Evidence, call: LossCall, wanted: str) -> Finding:
    return Finding(
        rule=_SLUG,
        severity=Severity.ERROR,
        tensors=names(trained(evidence, call.parameters)),
        place=call.place,
        message=f"`{call.function}` is fed with targets between {number(call.target_low)} and "
        f"{number(call.target_high)}, where it takes {wanted}",
        fix=f"Bring the targets to {wanted} before they enter the loss",
        evidence={
            "calls": call.calls,
            "target_low": call.target_low,
            "target_high": call.target_high,
            "negative": call.target_negative,
            "above_one": call.target_above_one,
        },
    )
