"""`encoder.3` returned only zeros since step 6: `encoder.0.weight` (+3) get no gradient any more.

## What it looks for

A ReLU behind which nothing is left: from some step on, to the end of the run, every output is zero.

## Why it does not learn

The slope of a ReLU is 0 below zero. A unit that is negative for every input passes no gradient back, so nothing can
lift it again. When all units of a layer are there, everything before it stops to learn, for good. One update that is
too large does it (a high learning rate, a loss that is a sum over many elements), or a start at zero: the slope at
exactly 0 is 0 as well, so a layer without bias whose weights start at zero never moves.

## What it measures

The share of zeros in the output of every ReLU and ReLU6, step by step; the layer counts as dead when all recorded steps
to the end, at least ten of them or half of the run, show only zeros, the gradient in front of the ReLU is exactly zero
in the same steps, and the loss is not. A ReLU that was called as a function is seen by its neighbours: all values in
front of it are negative, their gradient is exactly zero, and what follows it received zeros (it is zero itself, or the
next layer's weight gets a zero gradient while the gradient of that layer's output is not zero). Zeros in single rows of
a gradient are not enough, because masks, pruning and routing make them too. In 47 programs that train and 90 small
networks at most 81% of the values behind a ReLU module were zero at any step, and no layer was dead.

Units that die one by one are a warning when at least 90% of a layer's units (of at least eight) never got a gradient in
the run and the ReLU behind it returned as many zeros; in the same runs at most 61% of a layer's units were silent.

A layer that died later is put down to a large step if, in the twenty recorded steps before, an update was larger than
0.3 of the weight it changed (4.5 in the case this rule was built on; in 38 of 47 programs that train no weight ever
moves that far, and the others have weights that start at or near zero). The place is then the line that made the
optimizer, or, where the rate was raised to more than three times what it was made with, the line that raised it. Of a
layer that was dead from the start it is the line that wrote a bias or weight which is negative throughout, if one is.

## Example

```python bad
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=2.0)  # dead-relu
for _ in range(40):
    x = torch.rand(32, 8)
    loss = (model(x) - 10.0 - x.sum(dim=1, keepdim=True)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 10.0)
    optimizer.step()
```

## Fix

Lower the learning rate (or average the loss instead of summing it); a leaky activation cannot die.

```python good
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for _ in range(40):
    x = torch.rand(32, 8)
    loss = (model(x) - 10.0 - x.sum(dim=1, keepdim=True)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 10.0)
    optimizer.step()
```

## When it is fine

A hinge loss that is satisfied, or a penalty that is not active, is zero too: the loss is then zero, or what enters the
ReLU has a gradient by another path, and the rule is silent. Sparse activations are no dead layer.

## See also

[zero-gradient](zero-gradient.md): zeros that no ReLU explains.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise, takewhile

from whygrad.evidence import Evidence
from whygrad.model import Finding, Module, Optimizer, Output, Parameter, Place, Role, Severity, Statistics
from whygrad.rules._base import rule
from whygrad.rules._select import names, optimizers_of
from whygrad.rules._sizes import line_of, models, outputs_of
from whygrad.rules._text import named, number

_SLUG = "dead-relu"
_TYPES = ("ReLU", "ReLU6")
_MIN_STEPS = 10  # recorded, or half of them where there are fewer
_FEWEST_STEPS = 5
_LARGE_UPDATE = 0.3  # of the weight
_LOOK_BACK = 20  # recorded steps before the death
_RAISED = 3.0  # times the rate that the optimizer was made with
_ROUNDING = 1e-6
_MOST_UNITS = 0.9
_FEWEST_UNITS = 8


@dataclass(frozen=True, slots=True)
class _End:
    """The recorded steps to the end of the run in which a tensor was all zero."""

    since: int
    steps: int
    recorded: int  # of the whole run
    first: int  # recorded step of the whole run


@dataclass(frozen=True, slots=True)
class _Death:
    """A ReLU that returns only zeros."""

    feeder: Output  # what enters it
    name: str  # of its output; where it was called as a function, of what enters it
    end: _End
    relu: Module | None = None  # None: called as a function


@dataclass(frozen=True, slots=True)
class _Reason:
    """What killed it."""

    place: Place | None
    what: str  # half a sentence
    fix: str
    step: int | None = None  # of the largest update before the death
    update: float = 0.0  # against the weight


@dataclass(frozen=True, slots=True)
class _Verdict:
    """A dead ReLU, what it stops and why."""

    death: _Death
    blocked: list[Parameter]
    reason: _Reason


@rule(
    _SLUG,
    title="A ReLU returns only zeros, for good",
    severity=Severity.ERROR,
    since="0.1.0",
    explains=("zero-gradient", "vanishing-gradient", "exploding-gradient", "update-too-small", "decay-dominates"),
)
def check(evidence: Evidence) -> Iterator[Finding]:
    """Yield one finding for each part of a model that dead layers stop, or each line that makes them."""
    for model in models(evidence):
        outputs = outputs_of(evidence, model[0].root)
        found = [*_dead_modules(evidence, outputs), *_dead_functions(evidence, outputs)]
        harmful = [(death, blocked) for death in found if (blocked := _blocked(evidence, model, death))]
        verdicts = [_Verdict(death, blocked, _reason(evidence, death, blocked)) for death, blocked in harmful]
        for group in _together(verdicts):
            yield _finding(group)
        whole = {parameter.id for verdict in verdicts for parameter in verdict.blocked}
        yield from _mostly_dead(evidence, [p for p in model if p.id not in whole], outputs)


# -- which layers are dead ---------------------------------------------------------------------------------------------


def _dead_modules(evidence: Evidence, outputs: Sequence[Output]) -> Iterator[_Death]:
    for before, output in pairwise(outputs):
        module = evidence.module_by_id[output.module]
        end = _dead_end(evidence, Role.OUTPUT, output) if module.type in _TYPES else None
        if end is not None and _holds(evidence, Role.OUTPUT_GRADIENT, before, end, _is_zero):
            yield _Death(before, output.name, end, module)


def _dead_functions(evidence: Evidence, outputs: Sequence[Output]) -> Iterator[_Death]:
    for output, after in pairwise(outputs):
        if evidence.module_by_id[after.module].type in _TYPES:
            continue
        end = _dead_end(evidence, Role.OUTPUT_GRADIENT, output)
        if end is None or not _holds(evidence, Role.OUTPUT, output, end, _is_negative):
            continue
        if _gets_zeros(evidence, after, end):
            yield _Death(output, output.name, end)


def _dead_end(evidence: Evidence, role: Role, output: Output) -> _End | None:
    """Return since when a tensor is zero, if it stays so for long enough while there is something to learn."""
    total = evidence.total(role, output.id)
    sampled = evidence.series(role, output.id)
    if total is None or not total.zero_steps or not sampled or not _is_zero(sampled[-1][1]):
        return None
    last_alive = max((step for step, measured in sampled if not _is_zero(measured)), default=-1)
    since = _first_zero(evidence, role, output, last_alive, min(step for step, _ in sampled if step > last_alive))
    steps = round(evidence.share_since(role, since) * total.steps)
    if steps < min(_MIN_STEPS, max(_FEWEST_STEPS, total.steps / 2)) or total.zero_steps < 0.9 * steps:
        return None
    return _End(since, steps, total.steps, sampled[0][0]) if _has_loss(evidence, since) else None


def _first_zero(evidence: Evidence, role: Role, output: Output, alive: int, dead: int) -> int:
    """Return the step between two sampled ones from which on a tensor is zero."""
    for step in reversed([step for step in evidence.matrices.steps(role) if alive < step < dead]):
        measured = evidence.matrices.read(step, role).get(output.id)
        if measured is not None and not _is_zero(measured):
            break
        dead = step
    return dead


def _has_loss(evidence: Evidence, since: int) -> bool:
    """Return whether there was anything left to learn: a hinge that is satisfied is no dead layer."""
    return any(step.loss != 0 for step in evidence.steps if step.id >= since)


def _is_zero(measured: Statistics) -> bool:
    return measured.count > 0 and measured.zeros == measured.count


def _is_negative(measured: Statistics) -> bool:
    return measured.sum_abs > 0 and measured.sum + measured.sum_abs <= _ROUNDING * measured.sum_abs


def _holds(evidence: Evidence, role: Role, output: Output, end: _End, test: Callable[[Statistics], bool]) -> bool:
    """Return whether a test holds for a tensor in every sampled step of the dead end."""
    measured = [each for step, each in evidence.series(role, output.id) if step >= end.since]
    return bool(measured) and all(map(test, measured))


def _gets_zeros(evidence: Evidence, after: Output, end: _End) -> bool:
    """Return whether the module that follows was given zeros, and a gradient came to its output."""
    if _holds(evidence, Role.OUTPUT_GRADIENT, after, end, _is_zero):
        return False
    if _holds(evidence, Role.OUTPUT, after, end, _is_zero):
        return True
    order = evidence.module_by_id[after.module].order
    weights = [p for p in evidence.parameters if p.order == order and p.attribute == "weight"]
    return bool(weights) and all(_is_silent(evidence, weight, end) for weight in weights)


def _is_silent(evidence: Evidence, parameter: Parameter, end: _End) -> bool:
    """Return whether a parameter's gradient is zero in every sampled step of the dead end."""
    measured = [each for step, each in evidence.series(Role.GRADIENT, parameter.id) if step >= end.since]
    return bool(measured) and all(map(_is_zero, measured))


# -- what it stops, and what killed it ---------------------------------------------------------------------------------


def _blocked(evidence: Evidence, model: Sequence[Parameter], death: _Death) -> list[Parameter]:
    """Return the parameters before the ReLU that get no gradient because of it, in forward order."""
    order = evidence.module_by_id[death.feeder.module].order
    before = [p for p in model if p.order is not None and order is not None and p.order <= order]
    blocked = takewhile(lambda parameter: _is_silent(evidence, parameter, death.end), reversed(before))
    return list(blocked)[::-1]


def _together(verdicts: Sequence[_Verdict]) -> list[list[_Verdict]]:
    """Return the deaths that stop the same parameters, or come from one line, as one; the first death first."""
    groups: list[list[_Verdict]] = []
    for verdict in sorted(verdicts, key=lambda each: (each.death.end.since, -each.death.feeder.order)):
        same = next((group for group in groups if any(_is_shared(verdict, other) for other in group)), None)
        if same is None:
            groups.append([verdict])
        else:
            same.append(verdict)
    return groups


def _is_shared(one: _Verdict, other: _Verdict) -> bool:
    ids = {parameter.id for parameter in one.blocked}
    same_line = one.reason.place is not None and one.reason.place == other.reason.place
    return same_line or any(parameter.id in ids for parameter in other.blocked)


def _finding(verdicts: Sequence[_Verdict]) -> Finding:
    """Return one finding for deaths that belong together."""
    death, reason = verdicts[0].death, verdicts[0].reason
    end = death.end
    hit = dict.fromkeys(parameter for verdict in verdicts for parameter in verdict.blocked)
    blocked = sorted(hit, key=lambda parameter: (parameter.order or 0, parameter.id))
    first = sorted(verdicts, key=lambda verdict: (verdict.death.end.since, verdict.death.feeder.order))
    relus = named(dict.fromkeys(verdict.death.name for verdict in first))
    subject = relus if death.relu is not None else f"the ReLU behind {relus}"
    when = "from the first recorded step on" if end.since == end.first else f"since step {end.since}"
    return Finding(
        rule=_SLUG,
        severity=Severity.ERROR,
        tensors=names(blocked),
        place=reason.place,
        message=f"{subject} returned only zeros {when}{reason.what}: {named(names(blocked))} "
        f"{'gets' if len(blocked) == 1 else 'get'} no gradient any more",
        fix=reason.fix,
        evidence={
            "since_step": end.since,
            "dead_steps": end.steps,
            "recorded_steps": end.recorded,
            "relus": len(verdicts),
            "parameters": len(blocked),
            **({"largest_update": reason.update, "at_step": reason.step} if reason.step is not None else {}),
        },
    )


def _reason(evidence: Evidence, death: _Death, blocked: Sequence[Parameter]) -> _Reason:
    update, step = _largest_update(evidence, blocked, death.end)
    optimizer = next(iter(optimizers_of(evidence, blocked[-1])), None)
    if death.end.since > death.end.first and update > _LARGE_UPDATE and optimizer is not None:
        what = f", after an update of {number(update)} times the weight at step {step}"
        fix = "Lower the learning rate, or average the loss instead of summing it"
        return _Reason(_rate_line(evidence, optimizer), what, fix, step, update)
    place = _relu_line(evidence, death, blocked[-1])
    weights = [parameter for parameter in blocked if len(parameter.shape) > 1]
    if weights and all(_starts_at_zero(evidence, weight) for weight in weights):
        fix = "Start the layer before the ReLU at small random values"
        return _Reason(weights[-1].written_at or place, ", because its weights start at zero", fix, step, update)
    low = _starts_below_zero(evidence, death)
    if low is not None and death.end.since == death.end.first:
        fix = f"Start `{low.name}` around zero: no input brings what enters the ReLU above it"
        return _Reason(low.written_at or place, f", because `{low.name}` starts below zero", fix, step, update)
    fix = "Use an activation that passes a gradient below zero (LeakyReLU, GELU), or none on an output"
    return _Reason(place, "", fix, step, update)


def _rate_line(evidence: Evidence, optimizer: Optimizer) -> Place | None:
    """Return the line that gave an optimizer its rate: where it was raised far, what raised it."""
    groups = [group for group in evidence.groups if group.optimizer == optimizer.id]
    raised = any(group.highest_learning_rate > _RAISED * group.learning_rate > 0 for group in groups)
    by_hand = (group.rate_set_at for group in groups)
    setters = [optimizer.scheduler_made_at, *by_hand] if raised else []
    return next((place for place in setters if place is not None), optimizer.made_at)


def _starts_below_zero(evidence: Evidence, death: _Death) -> Parameter | None:
    """Return the bias or weight of the layer before the ReLU that was written to be negative throughout."""
    order = evidence.module_by_id[death.feeder.module].order
    own = [p for p in evidence.parameters if p.order == order and p.written_at not in (None, p.made_at)]
    totals = ((p, evidence.total(Role.WEIGHT, p.id)) for p in sorted(own, key=lambda p: len(p.shape)))
    return next((p for p, total in totals if total is not None and _is_negative(total.statistics)), None)


def _largest_update(evidence: Evidence, blocked: Sequence[Parameter], end: _End) -> tuple[float, int | None]:
    """Return the largest update against the weight shortly before the death, and its step."""
    best: tuple[float, int | None] = (0.0, None)
    for step in [step for step in evidence.matrices.steps(Role.UPDATE) if step < end.since][-_LOOK_BACK:]:
        updates, weights = (evidence.matrices.read(step, role) for role in (Role.UPDATE, Role.WEIGHT))
        both = [p.id for p in blocked if len(p.shape) > 1 and p.id in updates and p.id in weights]
        ratios = [updates[each].rms / weights[each].rms for each in both if weights[each].rms > 0]
        best = max(best, (max(ratios, default=0.0), step), key=lambda found: found[0])
    return best


def _relu_line(evidence: Evidence, death: _Death, last: Parameter) -> Place | None:
    if death.relu is None:
        return line_of(evidence, (last,))
    return death.relu.made_at or last.made_at


def _starts_at_zero(evidence: Evidence, parameter: Parameter) -> bool:
    weights = evidence.total(Role.WEIGHT, parameter.id)
    return weights is not None and weights.zero_steps > 0


# -- units that die one by one -----------------------------------------------------------------------------------------


def _mostly_dead(evidence: Evidence, model: Sequence[Parameter], outputs: Sequence[Output]) -> Iterator[Finding]:
    for before, output in pairwise(outputs):
        order = evidence.module_by_id[before.module].order
        if evidence.module_by_id[output.module].type not in _TYPES:
            continue
        for weight in model:
            if weight.order == order and weight.rows >= _FEWEST_UNITS and _is_mostly_silent(evidence, weight, output):
                yield _dead_units(evidence, weight, output)


def _is_mostly_silent(evidence: Evidence, weight: Parameter, output: Output) -> bool:
    """Return whether most rows of a weight never got a gradient, and the ReLU returned zeros for as many."""
    values, gradient = evidence.total(Role.OUTPUT, output.id), evidence.total(Role.GRADIENT, weight.id)
    if values is None or gradient is None or gradient.steps < _MIN_STEPS:
        return False
    share = weight.silent_rows / weight.rows
    return share >= _MOST_UNITS and values.statistics.zero_share >= share - _ROUNDING


def _dead_units(evidence: Evidence, weight: Parameter, output: Output) -> Finding:
    relu = evidence.module_by_id[output.module]
    return Finding(
        rule=_SLUG,
        severity=Severity.WARNING,
        tensors=(weight.name,),
        place=relu.made_at or weight.made_at,
        message=f"{weight.silent_rows} of {weight.rows} units of `{weight.name}` got no gradient in the whole run: "
        f"`{output.name}` returned zeros for them",
        fix="Use an activation that passes a gradient below zero (LeakyReLU, GELU), or start the biases higher",
        evidence={"units": weight.rows, "dead_units": weight.silent_rows, "steps": weight.steps},
    )
