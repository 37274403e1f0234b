"""`nll_loss` is fed with probabilities, between 0.012 and 0.61, where it takes their logarithms.

## What it looks for

`nll_loss`, `kl_div` or `ctc_loss` on something else than log-probabilities: on probabilities, or on raw scores.

## Why it does not learn

`nll_loss` computes nothing but minus the entry of the right class; the logarithm is left to the caller. On
probabilities that is minus the probability, between -1 and 0. Its gradient fades where the model is sure and wrong,
just where it should be largest, so training is slow or stops. On raw scores it has no lower bound: all scores grow
without end, for nothing keeps one class from growing at the cost of the others.

## What it measures

In the traced steps, for each call that a backward pass led back to: the numbers of the input, its sums over the
classes, and the sums of exp(input). Log-probabilities are at most 0, and their exp adds up to 1. Reported is an input
that lies between 0 and 1 and adds up to 1, to 0.001, in all samples (or comes straight from a softmax); and one with
values above 0.5 whose exp adds up to more than 1 in all samples and to more than 2 in some: that of log-probabilities
cannot, and that of C raw scores of a fresh model is C or more.

## Example

```python bad
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
criterion = nn.NLLLoss()
for _ in range(5):
    probabilities = model(torch.randn(16, 4)).softmax(dim=1)  # probabilities-to-nll
    loss = criterion(probabilities, torch.randint(0, 3, (16,)))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
```

## Fix

Use `log_softmax` in place of softmax, or raw scores with `cross_entropy`.

```python good
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
criterion = nn.NLLLoss()
for _ in range(5):
    log_probabilities = model(torch.randn(16, 4)).log_softmax(dim=1)
    loss = criterion(log_probabilities, torch.randint(0, 3, (16,)))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
```

## When it is fine

Where the expected accuracy itself is to be maximised: then `1 - probability` says it more plainly.

## See also

[double-softmax](double-softmax.md): probabilities where raw scores are meant.
"""

from __future__ import annotations

from collections.abc import Iterator

from whygrad.evidence import Evidence
from whygrad.model import Finding, LossCall, Severity
from whygrad.rules._base import rule
from whygrad.rules._losses import SOFTMAXES, classes_of, is_probability, is_unit, places, seen_often, trained
from whygrad.rules._select import names
from whygrad.rules._text import number

_SLUG = "probabilities-to-nll"
_OF_LOGARITHMS = ("nll_loss", "kl_div", "ctc_loss")
_POSITIVE = 0.5  # log-probabilities are at most 0
_NO_LOGARITHM = 2.0  # exp of log-probabilities adds up to 1


@rule(
    _SLUG,
    title="NLLLoss is fed with something else than log-probabilities",
    severity=Severity.WARNING,
    since="0.1.0",
    explains=(
        *("activation-on-output", "vanishing-gradient", "saturated-activation", "zero-gradient", "update-too-small"),
        *("exploding-gradient", "decay-dominates", "constant-loss"),
    ),
)
def check(evidence: Evidence) -> Iterator[Finding]:
    """Yield a finding for each such call."""
    for call in evidence.losses:
        if call.function not in _OF_LOGARITHMS or not seen_often(call.calls) or classes_of(call) < 2:
            continue
        if is_probability(call) or (call.activation in SOFTMAXES and is_unit(call)):
            yield _finding(
                evidence, call, "probabilities", "Use log_softmax in place of softmax, or take the logarithm"
            )
        elif call.high > _POSITIVE and call.exp_sum_high > _NO_LOGARITHM and call.exp_sum_low > 1:
            yield _finding(evidence, call, "raw scores", "Use log_softmax on these scores, or cross_entropy")


def _finding(evidence: Evidence, call: LossCall, what: str, fix: str) -> Finding:
    lines = places(call.activation_at, call.place)
    return Finding(
        rule=_SLUG,
        severity=Severity.WARNING,
        tensors=names(trained(evidence, call.parameters)),
        place=lines[0] if lines else None,
        message=f"`{call.function}` is fed with {what}, between {number(call.low)} and {number(call.high)}, where it "
        "takes log-probabilities",
        fix=fix,
        evidence={
            "calls": call.calls,
            "low": call.low,
            "high": call.high,
            "largest_sum": call.sum_high,
            "largest_exp_sum": call.exp_sum_high,
            "activation": call.activation,
        },
        also=lines[1:],
    )
