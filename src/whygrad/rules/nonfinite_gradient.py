"""the gradient of `encoder.weight` (+3) is NaN at step 130: `log` made it: 2 elements of its input are 0.

## What it looks for

The first step at which the loss, a gradient or a parameter became NaN or Inf, and on which side of the loss that
happened: in forward, in backward, or in the optimizer's update.

## Why it does not learn

One NaN in a gradient makes the whole parameter NaN at the next step, the next forward makes the loss NaN, and backward
carries that into every parameter: a single bad element ends the training. Clipping by norm spreads it at once, because
the norm is NaN too. Where it started can no longer be seen a step later.

## What it measures

In each recorded step the result of every torch call is looked at, and in backward what every node of the graph gives
on: the first call, or node, that made NaN or Inf out of finite numbers is the place, with its line. What never gets to
the loss, or to a parameter's gradient, is left out.

In the steps between, nothing is followed while they run. Two questions are asked when backward is called. The loss is
not finite: what its graph saved is searched for the first node with finite inputs and a result that is not. The loss
is finite: the nodes whose derivative can be infinite are asked whether it is, at the values they saved (a root of 0);
then this one pass is watched. The line of such a node is told by the likeness of the graph to those of recorded steps,
and left out where several lines look alike. `whygrad run --trace-all` follows every step, and is certain.

NaN and Inf are also counted in every gradient, weight, update and module output of each recorded step, and in the loss
of each step. Where no operation was seen (on an accelerator, a step is not made to wait for an answer), the first step
with any of them is taken apart:

- the loss is not finite: it arose in forward, at the earliest module whose output is not finite, or behind all modules;
- the loss is finite, a gradient is not: it arose in backward, between the last module whose output's gradient is still
  finite and the one before it (counted from the loss);
- all gradients are finite, what they changed is not: it arose in the optimizer's step.

Values of -Inf that never reach the loss or a gradient (attention masks) are no finding, and neither are gradients that
something kept away from the parameters: a GradScaler that skips the step, a guard in the loop, an optimizer that leaves
its parameters finite. There is no threshold.

## Example

```python bad
import torch
from torch import nn


class Distance(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(4))

    def forward(self, a, b):
        return (((a - b) * self.scale) ** 2).sum(dim=1).sqrt()  # nonfinite-gradient


torch.manual_seed(0)
model = Distance()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(6):
    a = torch.randn(8, 4)
    b = torch.cat([a[:1], torch.randn(7, 4)])  # the first pair is equal: the root of 0 has an infinite derivative
    loss = (model(a, b) - 1.0).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
```

## Fix

Keep every root, logarithm, division, norm and power away from the point where it, or its derivative, is infinite.

```python good
import torch
from torch import nn


class Distance(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(4))

    def forward(self, a, b):
        return ((((a - b) * self.scale) ** 2).sum(dim=1) + 1e-12).sqrt()


torch.manual_seed(0)
model = Distance()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(6):
    a = torch.randn(8, 4)
    b = torch.cat([a[:1], torch.randn(7, 4)])
    loss = (model(a, b) - 1.0).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
```

## When it is fine

Never, once it reaches a parameter. To drop bad batches, skip `optimizer.step()` where the loss or the gradient's norm
is not finite; the rule then says nothing.

## See also

[exploding-gradient](exploding-gradient.md): the numbers grew until they overflowed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from whygrad.evidence import Evidence
from whygrad.model import Event, Finding, Output, Parameter, Place, Role, Severity, Statistics
from whygrad.rules._base import rule
from whygrad.rules._births import described, known_broken, last_birth_step, remedy, seen_birth
from whygrad.rules._select import holder, names
from whygrad.rules._sizes import broken_at, has_broken_loss, outputs_by
from whygrad.rules._text import counted, named, number

_SLUG = "nonfinite-gradient"
_BROKEN_LOSS = "nonfinite_loss"  # event
_DOMAIN = "keep the inputs of its roots, logarithms, divisions and exponentials inside their domain"


@dataclass(frozen=True, slots=True)
class _Birth:
    """Where the first value that is not finite arose."""

    side: str  # "forward", "backward", "update", "initial", "unrecorded"
    what: str  # half a sentence
    fix: str
    place: Place | None = None
    module: str = ""
    step: int | None = None  # where it is known to be an earlier one than what was recorded shows


@rule(
    _SLUG,
    title="NaN or Inf reached the parameters",
    severity=Severity.ERROR,
    since="0.1.0",
    explains=(
        "vanishing-gradient",
        "zero-gradient",
        "dead-relu",
        "saturated-activation",
        "update-too-large",
        "update-too-small",
        "constant-loss",
    ),
)
def check(evidence: Evidence) -> Iterator[Finding]:
    """Yield at most one finding: the first step that went wrong."""
    known = known_broken(evidence)
    step = broken_at(evidence)
    if step is None:
        if not known:
            return
        step = last_birth_step(evidence)
    broken = [p for p in evidence.parameters if p.requires_grad and (p.id in known or _is_broken(evidence, p))]
    if broken:
        yield _broken_parameters(evidence, step, broken)
    elif any(has_broken_loss(each) for each in evidence.steps):
        yield _broken_loss(evidence)


def _is_broken(evidence: Evidence, parameter: Parameter) -> bool:
    """Return whether NaN or Inf reached the parameter's value, or nothing shows that it was kept away."""
    value, update = (evidence.total(role, parameter.id) for role in (Role.WEIGHT, Role.UPDATE))
    if any(total is not None and total.nonfinite_steps for total in (value, update)):
        return True
    gradient = evidence.total(Role.GRADIENT, parameter.id)
    if gradient is None or gradient.first_nonfinite_step is None:
        return False
    first = gradient.first_nonfinite_step
    if parameter.id in evidence.matrices.read(first, Role.UPDATE):
        return False
    return not any(parameter.id in evidence.matrices.read(step, Role.WEIGHT) for step in _after(evidence, first))


def _after(evidence: Evidence, step: int) -> Iterator[int]:
    return (later for later in evidence.matrices.steps(Role.WEIGHT) if later > step)


def _broken_parameters(evidence: Evidence, step: int, broken: list[Parameter]) -> Finding:
    gradients = evidence.matrices.read(step, Role.GRADIENT)
    hit = [p for p in evidence.parameters_in_order if p.id in gradients and gradients[p.id].nonfinite]
    birth = _birth(evidence, step, hit)
    at = step if birth.step is None else birth.step
    affected = [*hit, *(p for p in evidence.parameters_in_order if p in broken and p not in hit)]
    kind = _kind(gradients[p.id] for p in hit)
    subject = "the gradient of" if hit else "the value of"
    loss = next((each.loss for each in evidence.steps if each.id == step), None)
    return Finding(
        rule=_SLUG,
        severity=Severity.ERROR,
        tensors=names(affected),
        place=birth.place,
        message=f"{subject} {named(names(hit or broken))} is {kind} at step {at}: {birth.what}",
        fix=birth.fix,
        evidence={
            "step": at,
            "steps": evidence.info.steps,
            "parameters": len(hit or broken),
            "parameters_in_the_end": len(broken),
            "arose_in": birth.side,
            "module": birth.module,
            "loss": None if loss is None else number(loss),
        },
    )


def _broken_loss(evidence: Evidence) -> Finding:
    broken = [(step.id, step.loss) for step in evidence.steps if step.loss is not None and has_broken_loss(step)]
    first, loss = broken[0]
    count = _broken_passes(evidence) if evidence.is_thinned else len(broken)
    seen = f"{number(loss)} at {counted(count, 'step')}, first at step {first}"
    birth = seen_birth(evidence, first)
    return Finding(
        rule=_SLUG,
        severity=Severity.WARNING,
        tensors=(),
        place=None if birth is None else birth.place,
        message=f"the loss was {seen}, while the parameters stayed finite"
        + ("" if birth is None else f": {described(birth)}"),
        fix="Find what in those batches takes the loss out of its domain, or skip them before backward"
        if birth is None
        else remedy(birth),
        evidence={"step": first, "broken_steps": count, "steps": evidence.info.steps, "arose_in": "forward"},
    )


def _broken_passes(evidence: Evidence) -> int:
    """Return how many backward passes ran on a loss that was not finite."""
    return sum(event.count for event in evidence.events_of(_BROKEN_LOSS))


def _kind(measured: Iterator[Statistics]) -> str:
    found = list(measured)
    return "Inf" if found and not any(each.nans for each in found) else "NaN"


def _birth(evidence: Evidence, step: int, hit: list[Parameter]) -> _Birth:
    weights = evidence.matrices.read(step, Role.WEIGHT)
    seen = seen_birth(evidence, step)
    if seen is not None:
        return _seen(evidence, step, seen)
    if not weights:
        return _unrecorded(f"step {step} was not recorded in full, so where it arose is not known")
    if any(p.requires_grad and p.id in weights and weights[p.id].nonfinite for p in evidence.parameters):
        return _already_broken(evidence, step)
    loss = next((each.loss for each in evidence.steps if each.id == step), None)
    if (loss is None and _first_broken_output(evidence, step)) or (loss is not None and not math.isfinite(loss)):
        return _in_forward(evidence, step)
    if not hit:
        return _Birth(
            "update",
            "all gradients were finite, so it arose in the optimizer's step",
            "Give the optimizer an eps that its dtype can hold, and a lower learning rate",
        )
    begun = "it arose" if loss is None else f"the loss was finite ({number(loss)}), so it arose in backward"
    return _in_backward(evidence, step, hit, begun)


def _seen(evidence: Evidence, step: int, birth: Event) -> _Birth:
    at = min(step, birth.last_step)
    side = birth.detail["side"]
    loss = next((each.loss for each in evidence.steps if each.id == at), None)
    finite = f"the loss was finite ({number(loss)}), " if side == "backward" and loss is not None else ""
    return _Birth(side, finite + described(birth), remedy(birth), birth.place, step=at)


def _unrecorded(what: str) -> _Birth:
    return _Birth("unrecorded", what, "Run it once with `whygrad run --trace-all`, which follows every step")


def _already_broken(evidence: Evidence, step: int) -> _Birth:
    if step == evidence.matrices.steps(Role.WEIGHT)[0]:
        return _Birth(
            "initial",
            "parameters held NaN or Inf before the first step",
            "Initialise every parameter: torch.empty and a bad checkpoint hold anything",
        )
    return _unrecorded(f"it arose before step {step}, at a step that was not recorded")


def _in_forward(evidence: Evidence, step: int) -> _Birth:
    first = _first_broken_output(evidence, step)
    if first is None:
        return _Birth(
            "forward",
            "the outputs of all modules were finite, so it arose between them and the loss",
            f"Look at what computes the loss: {_DOMAIN}",
        )
    module = evidence.module_by_id[first.module]
    return _Birth(
        "forward",
        f"the output of `{first.name}` ({module.type}) was the first that was not finite, so it arose there",
        "Set zero_infinity=True, and give each target enough input frames"
        if module.type == "CTCLoss"
        else f"Look at `{first.name}` and at what is passed to it: {_DOMAIN}",
        module.made_at if module.type == "CTCLoss" else None,
        first.name,
    )


def _first_broken_output(evidence: Evidence, step: int) -> Output | None:
    """Return the first output that became non-finite at this step; one that always was so is a mask."""
    known = evidence.module_by_id
    totals = ((output, evidence.total(Role.OUTPUT, output.id)) for output in evidence.outputs if output.module in known)
    fresh = (o for o, total in totals if total is not None and total.first_nonfinite_step == step)
    return min(fresh, key=lambda output: output.order, default=None)


def _in_backward(evidence: Evidence, step: int, hit: list[Parameter], begun: str) -> _Birth:
    gradients = evidence.matrices.read(step, Role.OUTPUT_GRADIENT)
    seen = sorted((o for o in evidence.outputs if o.id in gradients), key=lambda output: output.order)
    bad = [output for output in seen if gradients[output.id].nonfinite]
    edge = bad[-1].order if bad else -1
    good = next((output for output in seen if output.order > edge and bad), None)
    behind = _first_behind(evidence, step, hit, edge)
    if behind is not None:
        where = f"`{behind.module}`" if behind.module else "the model"
        return _Birth("backward", f"{begun}, in {where}", _derivative(where), behind.used_at, behind.module)
    if not bad:
        return _Birth("backward", begun, _derivative("the model"))
    after = f"the output of `{good.name}`" if good is not None else "the loss"
    what = f"{begun}, between {after} and the output of `{bad[-1].name}`"
    return _Birth("backward", what, _derivative(f"what comes after `{bad[-1].name}`"), None, bad[-1].name)


def _derivative(where: str) -> str:
    return f"Add an epsilon inside the root, norm, power or division in {where}: its derivative is infinite at 0"


def _first_behind(evidence: Evidence, step: int, hit: list[Parameter], edge: int) -> Parameter | None:
    """Return the parameter whose gradient broke although that of its module's output is finite.

    Clipping by norm makes every gradient NaN: where every element of all of them is, this shows nothing.
    """
    gradients = evidence.matrices.read(step, Role.GRADIENT)
    if len(gradients) > 1 and all(each.nonfinite == each.count for each in gradients.values()):
        return None
    incoming = evidence.matrices.read(step, Role.OUTPUT_GRADIENT)
    for parameter in reversed(hit):
        outputs = [o for o in outputs_by(evidence, holder(evidence, parameter)) if o.id in incoming]
        if outputs and all(not incoming[o.id].nonfinite and o.order > edge for o in outputs):
            return parameter
    return None
