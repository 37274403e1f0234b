"""the relu on what `mse_loss` takes cannot return 41% of the targets, which lie between -2.1 and 1.9.

## What it looks for

An activation as the last operation of a model whose range does not hold what the loss asks for: a ReLU, sigmoid or tanh
on a regression output, or on logits.

## Why it does not learn

A ReLU returns nothing below 0, a sigmoid nothing outside of 0 to 1, a tanh nothing outside of -1 to 1. The nearest it
can get to a target out there is its edge, where its slope is zero: the model is pushed into the flat part and stays
there. A ReLU on the output has one more trap, though all targets are positive: once it returns 0 for every sample
no gradient is left, and the model is dead for good. Logits that went through a ReLU give no class less than a
probability of one half, or the same share as all classes that are off; those of a sigmoid or tanh differ by 1 or 2 at
most, so no prediction is ever sure.

## What it measures

In the traced steps, for each loss that a backward pass led back to: the last activation on the prediction, changes of
shape, selections and casts aside, and the share of targets outside of its range.

- `mse_loss`, `l1_loss`, `smooth_l1_loss`, `huber_loss` and differences written by hand: reported if more than 5% of the
  targets lie outside of the range by more than 0.001, on average over at least three calls. Noise around a bound is
  less; more than half is an error. Targets that are themselves computed by a model, and no data is added, are left
  alone: codes and features of a teacher adapt.
- a ReLU there, no target outside, yet all gradients behind it are zero in the last quarter of the recorded steps;
- `cross_entropy` behind a ReLU, sigmoid or tanh, `binary_cross_entropy_with_logits` behind a ReLU or tanh; a sigmoid or
  log_softmax behind a ReLU or tanh, where a loss on probabilities follows. A scale in between breaks the chain: it
  widens the range.

## Example

```python bad
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(
    nn.Linear(4, 1),
    nn.Sigmoid(),  # activation-on-output
)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(5):
    x = torch.randn(16, 4)
    loss = nn.functional.mse_loss(model(x), 3 * x.sum(dim=1, keepdim=True))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
```

## Fix

Return what the last linear layer returns. Where outputs have to be positive, use softplus or exp; where they have
bounds, scale the targets to the range of the activation.

```python good
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(5):
    x = torch.randn(16, 4)
    loss = nn.functional.mse_loss(model(x), 3 * x.sum(dim=1, keepdim=True))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
```

## When it is fine

Where predictions are to be clipped and targets beyond are outliers.

## See also

[dead-relu](dead-relu.md): a ReLU inside the model. [double-softmax](double-softmax.md): the loss applies the activation
itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from whygrad.evidence import Evidence
from whygrad.model import Finding, LossCall, Parameter, Place, Role, Severity
from whygrad.rules._base import rule
from whygrad.rules._losses import RELUS, SIGMOIDS, SOFTMAXES, TANHS, classes_of, places, seen_often, trained
from whygrad.rules._select import names
from whygrad.rules._text import number

_SLUG = "activation-on-output"
_REGRESSIONS = ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "sub", "rsub", "subtract")
_OF_LOGITS = ("cross_entropy", "binary_cross_entropy_with_logits")
_OF_PROBABILITIES = ("binary_cross_entropy", "nll_loss")
_OUTSIDE = 0.05  # share of the targets
_MOST = 0.5  # of them: the model cannot learn what it is for
_LAST = 4  # the last quarter of the steps
_MIN_DEAD_STEPS = 3
_FIX = "Leave the activation out of the output, or bring the targets into its range"


@rule(
    _SLUG,
    title="Activation on the output",
    severity=Severity.ERROR,
    since="0.1.0",
    explains=(
        *("dead-relu", "zero-gradient", "vanishing-gradient", "saturated-activation", "update-too-small"),
        *("decay-dominates", "constant-loss"),
    ),
)
def check(evidence: Evidence) -> Iterator[Finding]:
    """Yield a finding for each loss whose input is held in too narrow a range."""
    for call in evidence.losses:
        if not seen_often(call.calls):
            continue
        parameters = trained(evidence, call.parameters)
        if call.function in _REGRESSIONS and call.activation:
            yield from _of_regression(evidence, call, parameters)
        elif call.function in _OF_LOGITS and call.activation and classes_of(call):
            yield from _of_logits(call, parameters)
        elif call.function in _OF_PROBABILITIES and call.inner_activation in (*RELUS, *TANHS):
            yield _of_inner(call, parameters)


def _of_regression(evidence: Evidence, call: LossCall, parameters: Sequence[Parameter]) -> Iterator[Finding]:
    share, taker = _share_outside(call), _loss(call)
    bounds = f"between {number(call.target_low)} and {number(call.target_high)}"
    if share > _OUTSIDE and not call.target_from_model:
        what = f"the {call.activation} on what {taker} takes cannot return {number(100 * share)}% of the targets"
        severity = Severity.ERROR if share > _MOST else Severity.WARNING
        yield _finding(call, parameters, severity, f"{what}, which lie {bounds}", call.activation_at)
    elif call.activation in RELUS and parameters and call.target_high > 0 and _has_died(evidence, parameters):
        what = f"the {call.activation} on what {taker} takes returns 0 for every sample"
        yield _finding(call, parameters, Severity.ERROR, f"{what}, and its targets lie {bounds}", call.activation_at)


def _share_outside(call: LossCall) -> float:
    """Return the share of targets that the activation on the prediction cannot return."""
    if call.activation in (*RELUS, "softplus"):
        return call.target_negative
    if call.activation in (*SIGMOIDS, *SOFTMAXES):
        return call.target_negative + call.target_above_one
    return call.target_above_one + call.target_below_minus_one if call.activation in TANHS else 0.0


def _loss(call: LossCall) -> str:
    return f"`{call.function}`" if "loss" in call.function else "the loss"


def _has_died(evidence: Evidence, parameters: Sequence[Parameter]) -> bool:
    """Return whether no gradient came to any of the parameters towards the end of the run."""
    steps = evidence.sample(Role.GRADIENT)
    last = steps[-max(_MIN_DEAD_STEPS, len(steps) // _LAST) :]
    if len(last) < _MIN_DEAD_STEPS:
        return False
    found = [evidence.matrices.read(step, Role.GRADIENT) for step in last]
    sizes = [each[p.id].max_abs for each in found for p in parameters if p.id in each]
    return bool(sizes) and max(sizes) == 0.0


def _of_logits(call: LossCall, parameters: Sequence[Parameter]) -> Iterator[Finding]:
    narrow = (*RELUS, *TANHS, *SIGMOIDS) if call.function == "cross_entropy" else (*RELUS, *TANHS)
    if call.activation in narrow:
        message = f"the logits that `{call.function}` takes come from a {call.activation}: they lie between "
        bounds = f"{number(call.low)} and {number(call.high)}"
        yield _finding(call, parameters, Severity.WARNING, message + bounds, call.activation_at)


def _of_inner(call: LossCall, parameters: Sequence[Parameter]) -> Finding:
    message = f"the {call.activation} in front of `{call.function}` takes what comes from a {call.inner_activation}"
    return _finding(call, parameters, Severity.WARNING, message, call.inner_activation_at)


def _finding(
    call: LossCall, parameters: Sequence[Parameter], severity: Severity, message: str, place: Place | None
) -> Finding:
    lines = places(place, call.place)
    return Finding(
        rule=_SLUG,
        severity=severity,
        tensors=names(parameters),
        place=lines[0] if lines else None,
        message=message,
        fix=_FIX,
        evidence={
            "calls": call.calls,
            "low": call.low,
            "high": call.high,
            "target_low": call.target_low,
            "target_high": call.target_high,
            "outside": _share_outside(call),
        },
        also=lines[1:],
    )
