"""the norm of all gradients jumped to 1.5e+05 at step 3, 128 times its median before: `i2h.weight` grew most.

## What it looks for

A gradient that grows without bound: over the steps of the run until the weights are thrown away, along the time axis of
a recurrent layer, or from layer to layer on its way back to the input.

## Why it does not learn

A layer that is applied T times multiplies the gradient T times by the same matrix. Where that matrix stretches by more
than 1 the gradient grows exponentially with T, and so does the state itself if nothing bounds it. Deep networks whose
weights start too large do the same over depth. A single step along such a gradient moves the weights further than all
training before, the loss jumps, and sooner or later the numbers overflow to Inf and NaN. Adam does not overshoot, but
one huge gradient fills its second moment and stalls it for about a thousand steps.

## What it measures

Three ways to grow, in steps before the first NaN or Inf:

- over the steps: the L2 norm of all gradients is more than 100 times its median before, and in the same step a weight
  changes by more than its own size (at the first step: it is above a million, changes a weight by a thousand times its
  size, and NaN or Inf follows; above 100,000 and thirty times, where they follow in the very next step);
- over time: a weight that is used at least four times in one pass (or lies in an RNN) has a gradient of more than 100
  times its own L2 norm, and 10 times the median of the steps before: heavy tails, because long sequences make it worse;
- over depth: the L2 norm of the gradients of module outputs is more than 1,000 times larger in the first third of the
  modules than in the last, and more than 10 times from each third to the next.

Gradients are read as the optimizer uses them, after clipping: a run that clips is bounded, and silent. Large losses
alone are no finding. Measured on 47 programs that train and 90 small networks: the norm of all gradients rose to at
most 21 times its median before (with an update of 0.29 of the weight); recurrent weights had gradients of at most 1.6
times their own norm; over depth the ratio was at most 28. The case this rule was built on (a recurrent layer without a
squashing function) shows 10,000,000,000,000, 4,900, and an update of 24 times the weight.

## Example

```python bad
import torch
from torch import nn

torch.manual_seed(0)
cell, head = nn.Linear(16, 16), nn.Linear(16, 1)
nn.init.normal_(cell.weight, std=0.5)
optimizer = torch.optim.SGD([*cell.parameters(), *head.parameters()], lr=0.01)
for step in range(12):
    state = torch.randn(8, 16)
    for _ in range(5 + 4 * step):
        state = cell(state)  # exploding-gradient
    loss = (head(state).mean(dim=1) - 1.0).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
```

## Fix

Bound the state (tanh, a gated cell, a normalisation), start the matrix smaller or orthogonal, and clip the norm of the
gradient before the step.

```python good
import torch
from torch import nn

torch.manual_seed(0)
cell, head = nn.Linear(16, 16), nn.Linear(16, 1)
nn.init.orthogonal_(cell.weight)
optimizer = torch.optim.SGD([*cell.parameters(), *head.parameters()], lr=0.01)
for step in range(12):
    state = torch.randn(8, 16)
    for _ in range(5 + 4 * step):
        state = torch.tanh(cell(state))
    loss = (head(state).mean(dim=1) - 1.0).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
```

## When it is fine

A rare outlier in the targets makes one large gradient that does no harm: its update stays small against the weight.

## See also

[nonfinite-gradient](nonfinite-gradient.md): a NaN that no growth announced.
[vanishing-gradient](vanishing-gradient.md): the other direction.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from whygrad.evidence import Evidence
from whygrad.model import Finding, Optimizer, Output, Parameter, Role, Severity
from whygrad.rules._base import rule
from whygrad.rules._select import holder, names, optimizers_of
from whygrad.rules._sizes import (
    Samples,
    broken_at,
    line_of,
    median,
    models,
    outputs_by,
    outputs_of,
    samples,
    samples_at,
)
from whygrad.rules._text import counted, named, number

_SLUG = "exploding-gradient"
_SPIKE = 100.0  # times the median before
_FIRST_SPIKE = 10_000.0  # where only one step came before
_WHOLE_WEIGHT = 1.0  # an update of the weight's own size
_OVERFLOWING = 1e6  # where no step came before, but NaN or Inf comes after
_THROWN = 1000.0  # times the weight, likewise
_LARGE = 1e5  # where the very next step is NaN or Inf
_THROWN_AT_ONCE = 30.0  # times the weight, likewise
_REUSED = 4  # uses in one pass
_RECURRENT = ("RNN", "LSTM", "GRU")
_HEAVY = 100.0  # of the weight's norm
_TAIL = 10.0  # times the median, or the next third
_DEEP = 1000.0  # first third against last third
_MIN_DEPTH = 6
_MIN_STEPS = 3
_LAST_STEPS = 32  # recorded, before the first NaN or Inf
_FIX_TIME = (
    "Bound the state (tanh, a gated cell, a normalisation), start the weight smaller, or clip the gradient's norm"
)
_FIX_RATE = "Lower the learning rate, or clip the norm of the gradient before step()"
_FIX_DEPTH = "Start the weights smaller (kaiming or xavier), or normalise between the layers"


_Recorded = Callable[[Role], Samples]
"""The statistics of the steps to look at, read when they are asked for."""


@dataclass(frozen=True, slots=True)
class _Spike:
    """A step at which the gradients of a model jumped and the weights went with them."""

    step: int
    norm: float  # of all gradients
    before: float  # its median in earlier steps; 0 where there was none
    update: float  # the largest one, against its weight


@rule(
    _SLUG,
    title="The gradient grows without bound",
    severity=Severity.ERROR,
    since="0.1.0",
    explains=("nonfinite-gradient", "update-too-large"),
)
def check(evidence: Evidence) -> Iterator[Finding]:
    """Yield at most one finding for what one optimizer moves."""
    broken = broken_at(evidence)
    steps = _steps(evidence, broken)

    def recorded(role: Role) -> Samples:
        return samples_at(evidence, role, steps)

    for parts in _together(evidence):
        group = [parameter for model in parts for parameter in model]
        spike = _spike(group, recorded, broken)
        heavy = _heavy(evidence, group, recorded)
        if spike is not None:
            yield _jumped(evidence, group, spike, recorded(Role.GRADIENT))
        elif heavy is not None:
            yield _recurred(evidence, *heavy, broken=broken)
        else:
            yield from (finding for model in parts for finding in _deepened(evidence, model, broken))


def _together(evidence: Evidence) -> list[list[tuple[Parameter, ...]]]:
    """Return the models by what moves them: one loss explodes for all that one optimizer holds."""
    found: dict[tuple[int, ...], list[tuple[Parameter, ...]]] = {}
    for model in models(evidence):
        found.setdefault(model[0].optimizers, []).append(model)
    return list(found.values())


def _steps(evidence: Evidence, broken: int | None) -> tuple[int, ...]:
    """Return the steps to look at: a sample, those shortly before the end, and outliers that the sample misses."""
    sampled = [step for step in evidence.sample(Role.GRADIENT) if broken is None or step < broken]
    recorded = evidence.matrices.steps(Role.GRADIENT)
    if broken is not None:
        return tuple(sorted({*sampled, *[step for step in recorded if step < broken][-_LAST_STEPS:]}))
    return tuple(sorted({*sampled, *_outliers(evidence, sampled, recorded)}))


def _outliers(evidence: Evidence, sampled: Sequence[int], recorded: Sequence[int]) -> Iterator[int]:
    """Yield the steps with gradients far above all sampled ones; the totals tell whether there are any."""
    largest: dict[int, float] = {}
    for step in sampled:
        for key, measured in evidence.matrices.read(step, Role.GRADIENT).items():
            largest[key] = max(largest.get(key, 0.0), measured.max_abs)
    totals = ((evidence.total(Role.GRADIENT, key), known) for key, known in largest.items())
    if any(total is not None and total.statistics.max_abs > _TAIL * known > 0 for total, known in totals):
        for step in recorded:
            gradients = evidence.matrices.read(step, Role.GRADIENT)
            if any(measured.max_abs > _TAIL * largest.get(key, math.inf) for key, measured in gradients.items()):
                yield step


# -- over the steps ----------------------------------------------------------------------------------------------------


def _spike(group: Sequence[Parameter], recorded: _Recorded, broken: int | None) -> _Spike | None:
    """Return the first step at which the gradients jumped and the weights were thrown away."""
    squares: dict[int, float] = {}
    for parameter in group:
        for step, gradient in recorded(Role.GRADIENT).get(parameter.id, {}).items():
            squares[step] = squares.get(step, 0.0) + gradient.sum_squares
    before: list[float] = []
    for step in sorted(squares):
        norm, typical = math.sqrt(squares[step]), median(before)
        jumped = norm > typical * (_SPIKE if len(before) > 1 else _FIRST_SPIKE)
        is_first = not before and broken is not None
        update = _largest_update(group, recorded, step) if jumped or is_first else 0.0
        if jumped and update > _WHOLE_WEIGHT:
            return _Spike(step, norm, typical, update)
        if is_first and _breaks(norm, update, at_once=broken == step + 1):
            return _Spike(step, norm, 0.0, update)
        if norm > 0:
            before.append(norm)
    return None


def _breaks(norm: float, update: float, *, at_once: bool) -> bool:
    """Return whether the first gradients are so large, and throw the weights so far, that NaN or Inf follows."""
    if at_once:
        return norm > _LARGE and update > _THROWN_AT_ONCE
    return norm > _OVERFLOWING and update > _THROWN


def _largest_update(group: Sequence[Parameter], recorded: _Recorded, step: int) -> float:
    return max((_against_weight(parameter, recorded, step) for parameter in group), default=0.0)


def _against_weight(parameter: Parameter, recorded: _Recorded, step: int) -> float:
    """Return the size of a step's update against that of the weight; 0 where it is not known."""
    update, weight = (recorded(role).get(parameter.id, {}).get(step) for role in (Role.UPDATE, Role.WEIGHT))
    if len(parameter.shape) < 2 or update is None or weight is None or not weight.rms > 0:
        return 0.0
    return update.rms / weight.rms


def _jumped(evidence: Evidence, group: Sequence[Parameter], spike: _Spike, gradients: Samples) -> Finding:
    hit = [parameter for parameter in group if _jump(gradients, parameter, spike.step) > _TAIL] or list(group)
    reused = [parameter for parameter in hit if _is_reused(evidence, parameter)]
    first = reused[0] if reused else hit[0]
    tensors = names([first, *hit])
    than_before = f", {number(spike.norm / spike.before)} times its median before" if spike.before else ""
    grown = f"{'jumped to' if spike.before else 'was'} {number(spike.norm)} at step {spike.step}{than_before}"
    thrown = f"an update was {number(spike.update)} times its weight"
    culprit = f"`{first.name}` {_reuse(evidence, first)}" if reused else f"{named(tensors)} grew most"
    optimizer = _stepping(evidence, first, spike.step)
    return Finding(
        rule=_SLUG,
        severity=Severity.ERROR,
        tensors=tensors,
        place=line_of(evidence, (first,)) if reused or optimizer is None else optimizer.made_at,
        message=f"the norm of all gradients {grown}, and {thrown}: {culprit}",
        fix=_FIX_TIME if reused else _FIX_RATE,
        evidence={
            "step": spike.step,
            "norm": spike.norm,
            "median_norm_before": spike.before,
            "update_against_weight": spike.update,
            "uses_in_a_pass": _uses(evidence, first),
        },
    )


def _stepping(evidence: Evidence, parameter: Parameter, step: int) -> Optimizer | None:
    """Return the optimizer of a parameter that made a step: a program may have made another one before."""
    holders = optimizers_of(evidence, parameter)
    number_of = next((each.optimizer for each in evidence.steps if each.id == step), None)
    return next((each for each in holders if each.id == number_of), holders[0] if holders else None)


def _jump(gradients: Samples, parameter: Parameter, step: int) -> float:
    """Return a gradient's norm against its own median before a step."""
    measured = gradients.get(parameter.id, {})
    before = median(each.l2 for earlier, each in measured.items() if earlier < step and each.l2 > 0)
    return measured[step].l2 / before if step in measured and before > 0 else 0.0


# -- over time ---------------------------------------------------------------------------------------------------------


def _is_reused(evidence: Evidence, parameter: Parameter) -> bool:
    return parameter.module_type in _RECURRENT or _uses(evidence, parameter) >= _REUSED


def _uses(evidence: Evidence, parameter: Parameter) -> float:
    """Return how often one backward pass goes through a parameter, as far as its module or the tracer shows it."""
    passes = max(1.0, evidence.info.backwards / max(1, evidence.info.steps))
    outputs = outputs_by(evidence, holder(evidence, parameter))
    totals = [(output.gradient_calls, evidence.total(Role.OUTPUT_GRADIENT, output.id)) for output in outputs]
    calls = [count / total.steps for count, total in totals if total is not None and total.steps]
    traced = (parameter.uses or 0) / max(1, evidence.info.traced_steps)
    return (max(calls) if calls else traced) / passes


def _reuse(evidence: Evidence, parameter: Parameter) -> str:
    uses = _uses(evidence, parameter)
    return f"is used {round(uses)} times in one pass" if uses > 1 else "is applied at every time step"


def _heavy(evidence: Evidence, group: Sequence[Parameter], recorded: _Recorded) -> tuple[Parameter, list[float]] | None:
    """Return the reused weight with the largest gradient against its own norm, and that ratio step by step."""
    ratios = ((p, _ratios(p, recorded)) for p in group if len(p.shape) > 1 and _is_reused(evidence, p))
    heavy = [(p, found) for p, found in ratios if _has_heavy_tail(found)]
    return max(heavy, key=lambda pair: max(pair[1]), default=None)


def _ratios(parameter: Parameter, recorded: _Recorded) -> list[float]:
    gradients, weights = (recorded(role).get(parameter.id, {}) for role in (Role.GRADIENT, Role.WEIGHT))
    both = [step for step in sorted(gradients) if step in weights and weights[step].l2 > 0]
    return [ratio for step in both if (ratio := gradients[step].l2 / weights[step].l2) > 0]


def _has_heavy_tail(ratios: Sequence[float]) -> bool:
    """Return whether a gradient stands out from those before it; at the start of a run they may be large and fall."""
    later = range(_MIN_STEPS - 1, len(ratios))
    return any(ratios[step] > max(_HEAVY, _TAIL * median(ratios[:step])) for step in later)


def _recurred(evidence: Evidence, parameter: Parameter, ratios: Sequence[float], *, broken: int | None) -> Finding:
    return Finding(
        rule=_SLUG,
        severity=Severity.WARNING if broken is None else Severity.ERROR,
        tensors=(parameter.name,),
        place=line_of(evidence, (parameter,)),
        message=f"the gradient of `{parameter.name}` reached {number(max(ratios))} times the weight's own norm, "
        f"{number(max(ratios) / median(ratios))} times its median: it {_reuse(evidence, parameter)}",
        fix=_FIX_TIME,
        evidence={
            "largest_against_weight": max(ratios),
            "median_against_weight": median(ratios),
            "uses_in_a_pass": _uses(evidence, parameter),
            "steps": len(ratios),
        },
    )


# -- over depth --------------------------------------------------------------------------------------------------------


def _deepened(evidence: Evidence, model: Sequence[Parameter], broken: int | None) -> Iterator[Finding]:
    gradients = samples(evidence, Role.OUTPUT_GRADIENT, before=broken)
    outputs = [output for output in outputs_of(evidence, model[0].root) if output.id in gradients]
    rows = _profiles(outputs, gradients)
    if len(outputs) < _MIN_DEPTH or len(rows) < (_MIN_STEPS if broken is None else 1):
        return
    third = len(outputs) // 3
    first, last = (median(median(row[part]) / median(row[third:-third]) for row in rows) for part in _parts(third))
    orders = {evidence.module_by_id[output.module].order for output in outputs[: 2 * third]}
    hit = [parameter for parameter in model if parameter.order in orders]
    if hit and first > _TAIL and last > 0 and 1 / last > _TAIL and first / last > _DEEP:
        severity = Severity.WARNING if broken is None else Severity.ERROR
        yield _grown(evidence, hit, first / last, len(outputs), severity)


def _parts(third: int) -> tuple[slice, slice]:
    return slice(0, third), slice(-third, None)


def _profiles(outputs: Sequence[Output], gradients: Samples) -> list[list[float]]:
    """Return the L2 norms of the outputs' gradients, in forward order, of every step at which all had one."""
    steps = sorted(gradients[outputs[0].id]) if outputs else []
    whole = [step for step in steps if all(step in gradients[output.id] for output in outputs)]
    rows = ([gradients[output.id][step].l2 for output in outputs] for step in whole)
    return [row for row in rows if min(row) > 0]


def _grown(evidence: Evidence, hit: Sequence[Parameter], ratio: float, depth: int, severity: Severity) -> Finding:
    return Finding(
        rule=_SLUG,
        severity=severity,
        tensors=names(hit),
        place=line_of(evidence, hit),
        message=f"the gradient grows {number(ratio)} times on its way back through {counted(depth, 'module')} to "
        f"{named(names(hit))}",
        fix=_FIX_DEPTH,
        evidence={"ratio": ratio, "per_module": ratio ** (1.5 / depth), "modules": depth, "parameters": len(hit)},
    )
