"""the gradient of `attn.weight` (+1) is exactly zero at all 100 recorded steps: its softmax is over one number.

## What it looks for

Parameters that something is to train, whose gradient is there and is zero at every recorded step.

## Why it does not learn

A gradient of zero is no missing gradient: `.grad` is a tensor, no check complains, and plain SGD adds nothing to the
weight. Adam's update is 0 / (0 + eps), also nothing. With weight decay the weight even moves, towards zero. The zeros
come from a product with zero (a mask, an advantage that is always 0, two factors that both start at zero), from an
operation whose slope is zero (a clamp outside of its range, a `max` or `minimum` that selects a constant, a sign), from
an input that is all zeros, or from a loss that does not depend on the result.

## What it measures

The share of zeros in the gradient of every parameter and of every module output, at each recorded step. A parameter is
reported when its gradient was all zero at each of at least five recorded steps. Neighbours in forward order are one
finding, and where the zeros begin decides what it says:

- the weights are zero themselves: a product of zeros never leaves zero;
- the gradient of the module's output is not zero: what enters the layer is, or the zeros arise inside the module;
- the gradient of the module's output is zero, that of a later output is not: the path is closed between the two;
- all are zero: the loss does not depend on what the model returns.

Where the traced steps saw a product with a tensor that does not learn and is all zeros, or a normalisation along a
dimension of size 1, on the way of all these parameters, the line of that is named.

It asks for five recorded steps, the last of them in the later half of the run, or for twenty.

Gradients that cancel to rounding are taken for zero. Across one module boundary at least 0.0099 of the gradient's L2
norm was left in 214 runs, healthy and sick, and at most 0.00002 in the one where the slope is zero in exact arithmetic;
the rule asks for less than 0.0001 at each sampled step and 0.00001 in the median, where nothing saturates.

One more thing is said as an info: a table with `padding_idx` that is looked up once per sample, where some samples hit
the padding row, gives a real id a row that never learns. A bias of a layer that learns, through its weight or through
what its weight is computed from (spectral and weight norm, pruning), is left to
[shift-invariant-parameter](shift-invariant-parameter.md).

## Example

```python bad
import torch
from torch import nn

torch.manual_seed(0)
policy = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 3))
optimizer = torch.optim.Adam(policy.parameters(), lr=1e-3)
for _ in range(8):
    log_p = policy(torch.randn(32, 4)).log_softmax(dim=1)
    reward = torch.ones(32, 3)  # every action is worth the same
    advantage = reward - reward.mean(dim=1, keepdim=True)  # zero-gradient
    loss = -(log_p * advantage).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
```

## Fix

Find the factor that is always zero and let it vary, or take the operation without a slope out of the path.

```python good
import torch
from torch import nn

torch.manual_seed(0)
policy = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 3))
optimizer = torch.optim.Adam(policy.parameters(), lr=1e-3)
for _ in range(8):
    log_p = policy(torch.randn(32, 4)).log_softmax(dim=1)
    reward = torch.rand(32, 3)
    advantage = reward - reward.mean(dim=1, keepdim=True)
    loss = -(log_p * advantage).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
```

## When it is fine

Zero at the first steps only (a head or a low-rank factor that starts at zero) is never reported. A loss term whose
weight is still zero in a short run is fine too.

## See also

[dead-relu](dead-relu.md): the zeros come from a ReLU. [unused-parameter](unused-parameter.md): no gradient at all.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from whygrad.evidence import Evidence
from whygrad.model import Finding, Output, Parameter, Place, Role, Severity
from whygrad.rules._base import rule
from whygrad.rules._select import by_line, holder, names
from whygrad.rules._sizes import (
    Samples,
    backward_line,
    is_taught,
    line_of,
    median,
    models,
    outputs_by,
    outputs_of,
    samples,
)
from whygrad.rules._text import counted, named, number
from whygrad.rules._zero_factors import zero_cause

_SLUG = "zero-gradient"
_MIN_STEPS = 5
_MANY_STEPS = 20  # that many suffice though the later half of the run was not looked at
_ROUNDING = 1e-4  # of the gradient one module further, at each step
_ROUNDING_MEDIAN = 1e-5
_SATURATED = 0.05  # of the steepest slope
_FLAT = 10.0  # a sigmoid or tanh of less has a slope above 1e-5


@dataclass(frozen=True, slots=True)
class _Cause:
    """Where the zeros begin."""

    what: str  # half a sentence
    fix: str
    place: Place | None


@rule(
    _SLUG,
    title="The gradient is there, and zero",
    severity=Severity.ERROR,
    since="0.1.0",
    explains=("update-too-small", "decay-dominates", "constant-loss", "vanishing-gradient"),
)
def check(evidence: Evidence) -> Iterator[Finding]:
    """Yield one finding for each stretch of parameters that get zeros."""
    if not _is_seen_late(evidence):
        return
    for model in models(evidence):
        for region in _regions(evidence, model):
            yield _zeros(evidence, region, whole=len(region) == len(model))
        yield from _cancelled(evidence, model)
    yield from _padding(evidence)


def _is_seen_late(evidence: Evidence) -> bool:
    """Return whether enough of the run was looked at: a curriculum may begin with what gives zeros."""
    recorded = evidence.matrices.steps(Role.GRADIENT)
    return bool(recorded) and (recorded[-1] >= evidence.info.steps // 2 or len(recorded) >= _MANY_STEPS)


def _regions(evidence: Evidence, model: Sequence[Parameter]) -> Iterator[tuple[Parameter, ...]]:
    """Yield the stretches, in forward order, of parameters that always got zeros; a bias alone is a mere shift."""
    stretch: list[Parameter] = []
    weights = _learning_weights(evidence)
    for parameter in model:
        shift = _is_bias(evidence, parameter) and _layer(parameter) in weights
        if _is_zero(evidence, Role.GRADIENT, parameter.id) and not shift:
            stretch.append(parameter)
        elif stretch:
            yield tuple(stretch)
            stretch = []
    if stretch:
        yield tuple(stretch)


def _is_zero(evidence: Evidence, role: Role, key: int) -> bool:
    total = evidence.total(role, key)
    return total is not None and total.steps >= _MIN_STEPS and total.zero_steps == total.steps


def _zeros(evidence: Evidence, region: tuple[Parameter, ...], *, whole: bool) -> Finding:
    cause = _cause(evidence, region, whole=whole)
    steps = max(_recorded(evidence, parameter) for parameter in region)
    return Finding(
        rule=_SLUG,
        severity=Severity.ERROR,
        tensors=names(region),
        place=cause.place,
        message=f"the gradient of {named(names(region))} is exactly zero at all {counted(steps, 'recorded step')}: "
        f"{cause.what}",
        fix=cause.fix,
        evidence={
            "recorded_steps": steps,
            "zero_steps": steps,
            "steps": max(parameter.steps for parameter in region),
            "parameters": len(region),
            "elements": sum(parameter.numel for parameter in region),
        },
    )


def _recorded(evidence: Evidence, parameter: Parameter) -> int:
    total = evidence.total(Role.GRADIENT, parameter.id)
    return 0 if total is None else total.steps


def _cause(evidence: Evidence, region: tuple[Parameter, ...], *, whole: bool) -> _Cause:
    flat = [p for p in region if len(p.shape) > 1 and _is_zero(evidence, Role.WEIGHT, p.id)]
    if flat:
        place, _ = max(by_line(flat, lambda p: p.written_at or p.made_at), key=lambda group: len(group[1]))
        what = f"{named(names(flat))} {'is' if len(flat) == 1 else 'are'} zero too, and a product of zeros stays zero"
        return _Cause(what, "Start at most one factor of a product at zero, the other at small random values", place)
    seen = zero_cause(evidence, region)
    if seen is not None:
        return _Cause(*seen)
    last = region[-1]
    own = [o for o in outputs_by(evidence, holder(evidence, last)) if evidence.total(Role.OUTPUT_GRADIENT, o.id)]
    if any(not _is_zero(evidence, Role.OUTPUT_GRADIENT, output.id) for output in own):
        return _inside(evidence, last, own[0])
    opening = _next_alive(evidence, last, own)
    if opening is not None:
        what = f"no gradient passes between the outputs of `{own[-1].name}` and `{opening.name}`"
        return _Cause(what, _open(f"between `{own[-1].name}` and `{opening.name}`"), _used(evidence, last))
    if whole and own:
        what = "the loss does not change with what the model returns"
        place = backward_line(evidence) or last.used_at
        return _Cause(what, _open("between the model's output and the loss"), place)
    return _Cause("its effect on the loss is multiplied by zero", _open("behind it"), _used(evidence, last))


def _inside(evidence: Evidence, parameter: Parameter, output: Output) -> _Cause:
    """Return why a gradient comes to a module's output, but not to a parameter of the module."""
    if parameter.module_type.startswith(("Linear", "Conv")) and parameter.attribute == "weight":
        what = f"a gradient comes to the output of `{output.name}`, so what enters it is all zeros"
        return _Cause(what, f"Look at what is passed to `{output.name}`", _used(evidence, parameter))
    what = (
        f"a gradient comes to the output of `{output.name}`, but what this parameter adds to it has no slope or no use"
    )
    return _Cause(what, _open(f"inside `{output.name}`"), _used(evidence, parameter))


def _open(where: str) -> str:
    return f"Take the factor that is always zero, or the operation without a slope, out of the path {where}"


def _used(evidence: Evidence, parameter: Parameter) -> Place | None:
    return line_of(evidence, (parameter,))


def _next_alive(evidence: Evidence, parameter: Parameter, own: Sequence[Output]) -> Output | None:
    if not own:
        return None
    later = (output for output in outputs_of(evidence, parameter.root) if output.order > own[-1].order)
    return next((o for o in later if not _is_zero(evidence, Role.OUTPUT_GRADIENT, o.id)), None)


# -- zero up to rounding -----------------------------------------------------------------------------------------------


def _cancelled(evidence: Evidence, model: Sequence[Parameter]) -> Iterator[Finding]:
    """Yield the place where the gradients of everything before it cancel to rounding."""
    gradients = samples(evidence, Role.OUTPUT_GRADIENT)
    outputs = [output for output in outputs_of(evidence, model[0].root) if output.id in gradients]
    for position, ratios in _passed_on(outputs, gradients).items():
        before, after = outputs[:position], outputs[position]
        largest = evidence.total(Role.OUTPUT, before[-1].id)
        if not _is_rounding(ratios) or largest is None or largest.statistics.max_abs > _FLAT:
            continue
        if any(
            activation.output == after.id and median(activation.slopes) < _SATURATED
            for activation in evidence.activations
        ):
            continue
        known = {evidence.module_by_id[output.module].order for output in before}
        hit = [parameter for parameter in model if parameter.order in known]
        if hit and not any(_is_zero(evidence, Role.GRADIENT, parameter.id) for parameter in hit):
            yield _rounding(evidence, hit, before[-1], after, ratios)
        return


def _passed_on(outputs: Sequence[Output], gradients: Samples) -> dict[int, list[float]]:
    """Return position -> step by step, the largest gradient of all outputs before against that of this output."""
    found: dict[int, list[float]] = {}
    for step in sorted({step for output in outputs for step in gradients[output.id]}):
        largest = 0.0
        for position, output in enumerate(outputs):
            size = gradients[output.id][step].l2 if step in gradients[output.id] else 0.0
            if size > 0 and largest > 0:
                found.setdefault(position, []).append(largest / size)
            largest = max(largest, size)
    return found


def _is_rounding(ratios: Sequence[float]) -> bool:
    return len(ratios) >= _MIN_STEPS and max(ratios) < _ROUNDING and median(ratios) < _ROUNDING_MEDIAN


def _rounding(
    evidence: Evidence, hit: Sequence[Parameter], before: Output, after: Output, ratios: Sequence[float]
) -> Finding:
    ratio, seen = median(ratios), zero_cause(evidence, hit)
    why = "" if seen is None else f"; {seen.what}"
    return Finding(
        rule=_SLUG,
        severity=Severity.ERROR,
        tensors=names(hit),
        place=_used(evidence, hit[-1]) if seen is None else seen.place,
        message=f"the gradient of {named(names(hit))} is zero up to rounding: behind the output of `{before.name}` "
        f"{number(ratio)} is left of the gradient of `{after.name}`{why}",
        fix=_open(f"between `{before.name}` and `{after.name}`") if seen is None else seen.fix,
        evidence={"ratio": ratio, "largest_ratio": max(ratios), "sampled_steps": len(ratios), "parameters": len(hit)},
    )


# -- what is worth knowing ---------------------------------------------------------------------------------------------


def _layer(parameter: Parameter) -> tuple[str, str]:
    """Return the layer of a parameter; a parametrization belongs to the layer that holds it."""
    return parameter.root, f".{parameter.module}".partition(".parametrizations.")[0].removeprefix(".")


def _learning_weights(evidence: Evidence) -> set[tuple[str, str]]:
    """Return the layers whose weight, or what it is computed from (`weight_orig`, `weight_v`), gets a gradient."""
    weights = (p for p in evidence.parameters if len(p.shape) > 1 and p.attribute != "bias")
    return {_layer(weight) for weight in weights if not _is_zero(evidence, Role.GRADIENT, weight.id)}


def _is_bias(evidence: Evidence, parameter: Parameter) -> bool:
    return parameter.attribute == "bias" and len(parameter.shape) == 1 and is_taught(evidence, parameter)


def _padding(evidence: Evidence) -> Iterator[Finding]:
    """Yield the tables whose padding row stands for a real id."""
    hit = [parameter for parameter in evidence.parameters_in_order if _hits_padding(evidence, parameter)]
    if not hit:
        return
    worst = max(hit, key=lambda parameter: _zero_lookups(evidence, parameter))
    share = _zero_lookups(evidence, worst)
    lines = [place for place, _ in by_line(hit, lambda parameter: parameter.made_at) if place is not None]
    yield Finding(
        rule=_SLUG,
        severity=Severity.INFO,
        tensors=(worst.name, *(p.name for p in hit if p is not worst)),
        place=worst.made_at,
        message=f"one row of `{worst.name}` is zero and gets no gradient, yet {number(100 * share)}% of all samples "
        "look it up",
        fix="Drop padding_idx if that index is a real id, or shift the ids by one",
        evidence={"share_of_lookups": share, "rows": worst.rows, "silent_rows": worst.silent_rows},
        also=tuple(place for place in lines if place != worst.made_at),
    )


def _hits_padding(evidence: Evidence, parameter: Parameter) -> bool:
    """Return whether samples that hold one id each look up a row that is zero for ever."""
    if parameter.module_type != "Embedding" or not parameter.silent_rows or not is_taught(evidence, parameter):
        return False
    outputs = outputs_by(evidence, holder(evidence, parameter))
    flat = any(len(output.shape) == 2 and _is_called_once(evidence, output) for output in outputs)
    return flat and _zero_rows(evidence, parameter) == 1 and _zero_lookups(evidence, parameter) > 0


def _is_called_once(evidence: Evidence, output: Output) -> bool:
    total = evidence.total(Role.OUTPUT, output.id)
    return total is not None and output.calls == total.steps


def _zero_rows(evidence: Evidence, parameter: Parameter) -> int:
    """Return how many rows' worth of the table's elements are zero at every recorded step."""
    total = evidence.total(Role.WEIGHT, parameter.id)
    return 0 if total is None else round(total.statistics.zero_share * parameter.rows)


def _zero_lookups(evidence: Evidence, parameter: Parameter) -> float:
    outputs = outputs_by(evidence, holder(evidence, parameter))
    shares = [evidence.total(Role.OUTPUT, output.id) for output in outputs]
    return max((total.statistics.zero_share for total in shares if total is not None), default=0.0)
