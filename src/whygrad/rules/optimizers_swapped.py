"""`opt_e` steps after backward passes that reach only what `opt_d` holds, in 60 rounds: neither trains `encoder.bias`.

## What it looks for

Two optimizers whose parameters, or whose losses, were mixed up.

## Why it does not learn

In training in turns each optimizer steps right after the loss of its own part. If it holds the other part, it steps on
gradients that are not there, or on those that the other loss left behind, and the gradients that were just computed are
cleared before the optimizer that holds them comes to step. Each `backward()` and each `step()` is fine by itself.

## What it measures

For each step of an optimizer, the backward passes since the steps before it (steps in a row share their passes). It
steps on a foreign loss if these passes reach nothing that it holds and all they reach is held by another optimizer. It
is a finding if that is so in 90% of its rounds, three or more, although other passes reach its own tensors in half;
and if either the same holds the other way round, or the step finds no gradient at all. An optimizer that steps later
than its backward pass, but on it, is thus left alone.

The place is the line that made the first of the two.

Two optimizers may also hold the same tensor. That they undo each other is a warning: between two steps of the one, the
other took back three quarters, on average over ten steps or more, of the way that the weight had gone from its first
value. Of two losses that pull one weight in different directions each takes back what little the other did last, not
what was reached before; the weight still gets somewhere. The place is then the line that made the second.

## Example

```python bad
import torch
from torch import nn

torch.manual_seed(0)
encoder, decoder = nn.Linear(8, 2), nn.Linear(2, 8)
opt_e = torch.optim.SGD(decoder.parameters(), lr=0.1)  # optimizers-swapped
opt_d = torch.optim.SGD(encoder.parameters(), lr=0.1)

for _ in range(10):
    x = torch.randn(16, 8)
    opt_e.zero_grad()
    encoder(x).pow(2).mean().backward()
    opt_e.step()
    opt_d.zero_grad()
    (decoder(encoder(x).detach()) - x).pow(2).mean().backward()
    opt_d.step()
```

## Fix

Give each optimizer the parameters that its loss is to train.

```python good
import torch
from torch import nn

torch.manual_seed(0)
encoder, decoder = nn.Linear(8, 2), nn.Linear(2, 8)
opt_e = torch.optim.SGD(encoder.parameters(), lr=0.1)
opt_d = torch.optim.SGD(decoder.parameters(), lr=0.1)

for _ in range(10):
    x = torch.randn(16, 8)
    opt_e.zero_grad()
    encoder(x).pow(2).mean().backward()
    opt_e.step()
    opt_d.zero_grad()
    (decoder(encoder(x).detach()) - x).pow(2).mean().backward()
    opt_d.step()
```

## When it is fine

Steps that are postponed on purpose by one turn.

## See also

[zero-grad-misplaced](zero-grad-misplaced.md), [missing-zero-grad](missing-zero-grad.md),
[not-in-optimizer](not-in-optimizer.md).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from whygrad.evidence import Evidence
from whygrad.model import Deed, Finding, Happening, Mark, Optimizer, Parameter, Severity
from whygrad.rules._base import rule
from whygrad.rules._loop import MIN_ROUNDS, Turn, has, places, total, trained_by, whole_turns
from whygrad.rules._select import names, optimizers_of
from whygrad.rules._text import counted, named

_SLUG = "optimizers-swapped"
_SHARE = 0.9  # of the rounds
_UNDONE = 0.75  # of the way from the first value
_MIN_COMPARED = 10  # steps
_REACHED = 0.5  # of the rounds: its own tensors get gradients, at another point


@rule(
    _SLUG,
    title="Two optimizers hold what the other one should train",
    severity=Severity.ERROR,
    since="0.1.0",
    explains=("zero-grad-misplaced", "missing-zero-grad", "update-too-small", "decay-dominates", "no-step"),
)
def check(evidence: Evidence) -> Iterator[Finding]:
    """Yield one finding for each pair of optimizers that were mixed up."""
    turns = {
        optimizer.id: [turn for turn in whole_turns(evidence, optimizer) if turn.stepped]
        for optimizer in evidence.optimizers
    }
    foreign = {number: partner for number, own in turns.items() if (partner := _partner(own)) is not None}
    told: set[int] = set()
    for optimizer in evidence.optimizers:
        partner = foreign.get(optimizer.id)
        if partner is None or optimizer.id in told or partner not in evidence.optimizer_by_id:
            continue
        mutual = foreign.get(partner) == optimizer.id
        if mutual or _finds_nothing(turns[optimizer.id]):
            told |= {optimizer.id, partner}
            yield _finding(evidence, optimizer, evidence.optimizer_by_id[partner], turns)
    yield from _undoing(evidence)


def _undoing(evidence: Evidence) -> Iterator[Finding]:
    """Yield one finding for each pair of optimizers that hold the same tensors and take back what the other did."""
    pairs: dict[tuple[int, ...], list[Parameter]] = {}
    for parameter in evidence.parameters:
        moving = tuple(sorted(o.id for o in optimizers_of(evidence, parameter) if o.steps))
        if len(moving) == 2 and parameter.compared >= 2 * _MIN_COMPARED and _taken_back(parameter) >= _UNDONE:
            pairs.setdefault(moving, []).append(parameter)
    for (first, second), held in pairs.items():
        yield _undone(evidence.optimizer_by_id[first], evidence.optimizer_by_id[second], held)


def _taken_back(parameter: Parameter) -> float:
    """Return the share of the way from its first value that one optimizer took back of what the other had done.

    Values are compared between the steps of each of the two: half of the comparisons are those of one.
    """
    return min(1.0, 2 * parameter.undone / parameter.compared)


def _undone(first: Optimizer, second: Optimizer, held: Sequence[Parameter]) -> Finding:
    compared = max(parameter.compared for parameter in held) // 2
    share = min(_taken_back(parameter) for parameter in held)
    return Finding(
        rule=_SLUG,
        severity=Severity.WARNING,
        tensors=names(held),
        place=second.made_at,
        message=(
            f"`{first.name}` and `{second.name}` both hold {named(names(held))}, and one takes back {share:.0%} of "
            f"what the other has done, on average over {counted(compared, 'step')}"
        ),
        fix=f"Give each tensor to one of `{first.name}` and `{second.name}`, or let their losses pull it the same way",
        evidence={"steps_compared": compared, "taken_back": share},
        also=() if first.made_at is None else (first.made_at,),
    )


def _partner(turns: Sequence[Turn]) -> int | None:
    """Return the optimizer whose tensors the passes before this one's steps reach instead of its own."""
    reached = total(turn for turn in turns if turn.own_passes())
    votes: dict[int, int] = {}
    for turn in turns:
        for partner in _foreign(turn):
            votes[partner] = votes.get(partner, 0) + turn.count
    if not votes or reached < max(MIN_ROUNDS, _REACHED * total(turns)):
        return None
    best = max(votes, key=lambda number: votes[number])
    return best if votes[best] >= max(MIN_ROUNDS, _SHARE * total(turns)) else None


def _foreign(turn: Turn) -> set[int]:
    """Return the optimizers of what the passes before the step reach, where they reach nothing of its own."""
    passes = list(_last_passes(turn.happenings))
    if not passes or any(turn.reaches(each) for each in passes):
        return set()
    return {number for each in passes for number in each.optimizers}


def _last_passes(happenings: Sequence[Happening]) -> Iterator[Happening]:
    """Yield the backward passes since the steps before the last one; steps in a row share theirs."""
    met = False
    for happening in reversed(happenings[:-1]):
        if happening.deed is Deed.BACKWARD:
            met = True
            yield happening
        elif happening.deed is Deed.STEP and met:
            return


def _finds_nothing(turns: Sequence[Turn]) -> bool:
    return total(turn for turn in turns if has(turn.end, Mark.EMPTY)) >= _SHARE * total(turns)


def _finding(
    evidence: Evidence, optimizer: Optimizer, partner: Optimizer, turns: Mapping[int, Sequence[Turn]]
) -> Finding:
    first, second = sorted((optimizer, partner), key=lambda each: each.id)
    held = (*trained_by(evidence, first), *trained_by(evidence, second))
    rounds = total(turns[optimizer.id])
    example = turns[optimizer.id][0]
    lines = (
        *(place for place in (first.made_at, second.made_at) if place is not None),
        *places(*_last_passes(example.happenings), example.end),
    )
    return Finding(
        rule=_SLUG,
        severity=Severity.ERROR,
        tensors=names(held),
        place=lines[0] if lines else None,
        message=(
            f"`{optimizer.name}` steps after backward passes that reach only what `{partner.name}` holds, in "
            f"{counted(rounds, 'round')}: neither trains {named(names(trained_by(evidence, optimizer)))}"
        ),
        fix=f"Swap the parameters, or the losses, of `{first.name}` and `{second.name}`",
        evidence={
            "rounds": rounds,
            "rounds_without_gradient": total(turn for turn in turns[optimizer.id] if has(turn.end, Mark.EMPTY)),
            "first_holds": [parameter.name for parameter in trained_by(evidence, first)][:8],
            "second_holds": [parameter.name for parameter in trained_by(evidence, second)][:8],
        },
        also=lines[1:],
    )
