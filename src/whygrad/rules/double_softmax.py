"""`cross_entropy` applies softmax to what is a softmax already: its input adds up to 1 in each sample.

## What it looks for

A loss that applies softmax or sigmoid itself and is fed with the result of one.

## Why it does not learn

`cross_entropy` takes logits, `binary_cross_entropy_with_logits` too, and so does `Categorical(logits=...)`. Given
probabilities they squash them once more. The second softmax sees numbers between 0 and 1, so the largest probability it
can give one of C classes is e / (e + C - 1): 0.73 of two, 0.23 of ten. The loss cannot fall below its logarithm (1.46
for ten classes), and the gradient passes through two flat functions: it is small where the model is wrong and sure. It
learns slowly, or stops, though the predictions are in the right order.

## What it measures

In the traced steps, for each call of these losses that a backward pass led back to: the last activation on the input,
changes of shape, selections and casts aside, and the numbers of the input. A softmax in front of `cross_entropy` or a
sigmoid in front of `binary_cross_entropy_with_logits` is reported if all values lay between 0 and 1 in each of at least
three calls. Where the softmax is further away, as in an attention over labels, the input of `cross_entropy` has to add
up to 1 over the classes, to 0.001, in all samples; no logits do. A log_softmax of a softmax, a sigmoid of a sigmoid in
front of a loss, and probabilities handed to `Categorical` as logits are reported as well.

`log_softmax` in front of `cross_entropy` changes nothing: it is not reported. Nor is a softmax that is scaled
afterwards.

## Example

```python bad
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(
    nn.Linear(4, 3),
    nn.Softmax(dim=1),  # double-softmax
)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
criterion = nn.CrossEntropyLoss()
for _ in range(5):
    loss = criterion(model(torch.randn(16, 4)), torch.randint(0, 3, (16,)))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
```

## Fix

Return logits from the model, and take the softmax only where probabilities are shown. Where the model makes
probabilities by other means, use `nll_loss` on their logarithm, or `binary_cross_entropy`.

```python good
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
criterion = nn.CrossEntropyLoss()
for _ in range(5):
    loss = criterion(model(torch.randn(16, 4)), torch.randint(0, 3, (16,)))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
```

## When it is fine

As a way to keep a model from being too sure; label smoothing does that with a parameter.

## See also

[probabilities-to-nll](probabilities-to-nll.md): probabilities where logarithms of them are meant.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from whygrad.evidence import Evidence
from whygrad.model import Event, Finding, LossCall, Severity, SoftmaxCall
from whygrad.rules._base import rule
from whygrad.rules._losses import (
    SIGMOIDS,
    SOFTMAXES,
    classes_of,
    ids_in,
    is_probability,
    is_unit,
    places,
    seen_often,
    trained,
)
from whygrad.rules._select import names
from whygrad.rules._text import number

_SLUG = "double-softmax"
_OVER_CLASSES = "cross_entropy"
_OF_SIGMOID = "binary_cross_entropy_with_logits"
_AS_LOGITS = "softmax_as_logits"  # event: probabilities that a distribution takes for logits


@rule(
    _SLUG,
    title="Softmax or sigmoid in front of a loss that applies it itself",
    severity=Severity.WARNING,
    since="0.1.0",
    explains=(
        *("softmax-dim", "vanishing-gradient", "saturated-activation", "zero-gradient", "update-too-small"),
        *("constant-loss", "activation-on-output", "decay-dominates"),
    ),
)
def check(evidence: Evidence) -> Iterator[Finding]:
    """Yield a finding for each loss, or softmax, that is fed with probabilities."""
    for call in evidence.losses:
        if seen_often(call.calls) and _is_squashed_twice(call):
            yield _of_loss(evidence, call)
    for softmax in evidence.softmaxes:
        if seen_often(softmax.calls) and softmax.function == "log_softmax" and softmax.inner_activation in SOFTMAXES:
            yield _of_softmax(evidence, softmax)
    for call in evidence.losses:
        if seen_often(call.calls) and call.activation in SIGMOIDS and call.inner_activation in (*SIGMOIDS, *SOFTMAXES):
            yield _of_activations(evidence, call)
    for event in evidence.events_of(_AS_LOGITS):
        if seen_often(event.count):
            yield _of_distribution(evidence, event)


def _is_squashed_twice(call: LossCall) -> bool:
    if call.function == _OF_SIGMOID:
        return call.activation in (*SIGMOIDS, *SOFTMAXES) and is_unit(call)
    if call.function != _OVER_CLASSES or classes_of(call) < 2:
        return False
    direct = call.activation in SOFTMAXES and is_unit(call)
    return direct or (call.softmax_at is not None and call.activation != "log_softmax" and is_probability(call))


def _of_loss(evidence: Evidence, call: LossCall) -> Finding:
    inner = "sigmoid" if call.function == _OF_SIGMOID else "softmax"
    lines = places(call.activation_at if call.activation else call.softmax_at, call.place)
    tensors = names(trained(evidence, call.parameters))
    what = f"comes from a {call.activation}" if call.activation else "adds up to 1 in each sample"
    limit = _limit(call)
    return Finding(
        rule=_SLUG,
        severity=Severity.WARNING,
        tensors=tensors,
        place=lines[0] if lines else None,
        message=f"`{call.function}` applies {inner} to what {what}, between {number(call.low)} and {number(call.high)}"
        + (f": the loss cannot fall below {number(limit)}" if limit else ""),
        fix=_fix(call),
        evidence={
            "calls": call.calls,
            "low": call.low,
            "high": call.high,
            "smallest_sum": call.sum_low,
            "largest_sum": call.sum_high,
            "activation": call.activation,
        },
        also=lines[1:],
    )


def _limit(call: LossCall) -> float:
    """Return the smallest loss that probabilities can reach; 0 where it is not that simple."""
    if call.function != _OVER_CLASSES or not call.target_is_index:
        return 0.0
    return math.log(math.e + classes_of(call) - 1) - 1


def _fix(call: LossCall) -> str:
    if call.function == _OF_SIGMOID:
        return f"Feed it logits: leave out the {call.activation}, or use binary_cross_entropy"
    if call.activation:
        return f"Feed it logits: leave out the {call.activation}, or use nll_loss on the logarithm of what it returns"
    return "Use nll_loss on the logarithm of these probabilities: cross_entropy takes logits"


def _of_softmax(evidence: Evidence, call: SoftmaxCall) -> Finding:
    lines = places(call.inner_activation_at, call.place)
    return Finding(
        rule=_SLUG,
        severity=Severity.WARNING,
        tensors=names(trained(evidence, call.parameters)),
        place=lines[0] if lines else None,
        message=f"`{call.function}` is applied to the result of a {call.inner_activation}, {call.calls} times",
        fix=f"Feed it logits: leave out the {call.inner_activation}, or take the logarithm of its result",
        evidence={"calls": call.calls, "dim": call.dim, "size": call.largest},
        also=lines[1:],
    )


def _of_activations(evidence: Evidence, call: LossCall) -> Finding:
    lines = places(call.inner_activation_at, call.activation_at, call.place)
    return Finding(
        rule=_SLUG,
        severity=Severity.WARNING,
        tensors=names(trained(evidence, call.parameters)),
        place=lines[0] if lines else None,
        message=f"a {call.activation} is applied to the result of a {call.inner_activation}: `{call.function}` is fed "
        f"with values between {number(call.low)} and {number(call.high)}",
        fix=f"Leave out the {call.inner_activation}, or the {call.activation} behind it",
        evidence={"calls": call.calls, "low": call.low, "high": call.high},
        also=lines[1:],
    )


def _of_distribution(evidence: Evidence, event: Event) -> Finding:
    return Finding(
        rule=_SLUG,
        severity=Severity.WARNING,
        tensors=names(trained(evidence, ids_in(event))),
        place=event.place,
        message=f"`{event.subject}` takes what comes from a softmax for logits, {event.count} times",
        fix="Hand the probabilities over as probs=..., or leave out the softmax",
        evidence={"calls": event.count},
    )
