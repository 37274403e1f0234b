"""`zero_grad()` wipes 3 of 4 backward passes into `head.weight` (+3) before `optimizer` steps: 600 passes are lost.

## What it looks for

Gradients that are cleared after the backward pass that computed them and before any step used them.

## Why it does not learn

`zero_grad()` between `backward()` and `step()` leaves nothing to step on: without a gradient the optimizer skips the
tensor, with zeros it moves it by momentum and weight decay alone. Inside a loop that accumulates over several batches,
`zero_grad()` once per batch throws away all of them but the last. With Accelerate the optimizer's `zero_grad()` does
nothing except in the batch that steps; called at the top of `accelerator.accumulate(...)` it clears, in just that
batch, what the others had accumulated.

## What it measures

The order of backward passes, clears and steps of each optimizer in every round of the run. A pass is lost if what it
added is cleared before this optimizer, or any other one that the pass reached, has stepped. It is a finding where the
step is left without a gradient in at least half of the rounds, or where at least 30% of the passes are lost, in the
same number in most rounds (a guard that drops a bad batch now and then is no such habit), and three or more in all.

Passes are not counted whose gradients the program read or used by hand before it cleared them (seen in traced steps, or
by the weights it wrote: two-pass methods such as sharpness-aware minimisation), that reached an input too (adversarial
examples), or that filled these gradients only on the way to those of another optimizer.

## Example

```python bad
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

for _ in range(10):
    for _ in range(4):
        optimizer.zero_grad()  # zero-grad-misplaced
        loss = (model(torch.randn(16, 4)) - 1).pow(2).mean() / 4
        loss.backward()
    optimizer.step()
```

## Fix

Clear the gradients once per step: after `step()`, or before the first backward pass of the next round.

```python good
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

for _ in range(10):
    optimizer.zero_grad()
    for _ in range(4):
        loss = (model(torch.randn(16, 4)) - 1).pow(2).mean() / 4
        loss.backward()
    optimizer.step()
```

## When it is fine

Passes that are run for another reason than to learn, and whose gradients are looked at in a way that was not seen.

## See also

[missing-zero-grad](missing-zero-grad.md): never cleared. [no-step](no-step.md): no step at all.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from whygrad.evidence import Evidence
from whygrad.model import Deed, Finding, Mark, Optimizer, Severity
from whygrad.rules._base import rule
from whygrad.rules._loop import (
    CLEARS,
    MIN_ROUNDS,
    Lost,
    Turn,
    has,
    is_habit,
    is_regular,
    lost_passes,
    places,
    total,
    trained_by,
    turns_of,
)
from whygrad.rules._select import names
from whygrad.rules._text import at, counted, named, passes

_SLUG = "zero-grad-misplaced"
_LOST = 0.3  # of the passes


@rule(
    _SLUG,
    title="Gradients are cleared before a step used them",
    severity=Severity.ERROR,
    since="0.1.0",
    explains=("update-too-small", "zero-gradient", "decay-dominates", "constant-loss", "vanishing-gradient"),
)
def check(evidence: Evidence) -> Iterator[Finding]:
    """Yield a finding for each optimizer whose gradients are cleared too early."""
    for optimizer in evidence.optimizers:
        turns = [turn for turn in turns_of(evidence, optimizer) if turn.own_passes() and not turn.round.cut_short]
        bare = [(turn, lost) for turn in turns if (lost := _bare(turn)) is not None]
        if is_habit([turn for turn, _ in bare], turns):
            yield _finding(evidence, optimizer, bare, turns, everything=True)
            continue
        turns = [turn for turn in turns if not turn.round.closure]
        lossy = [(turn, lost) for turn in turns if (lost := lost_passes(turn)) is not None]
        if _is_habit(lossy, turns):
            yield _finding(evidence, optimizer, lossy, turns, everything=False)


def _bare(turn: Turn) -> Lost | None:
    """Return the passes of a round whose step found no gradient, because they were cleared."""
    if not turn.stepped or not has(turn.end, Mark.EMPTY):
        return None
    lost = lost_passes(turn)
    clears = [each for each in turn.happenings if each.deed in CLEARS]
    last = next((each for each in reversed(turn.happenings) if turn.reaches(each) or each.deed in CLEARS), None)
    return lost if lost is not None and clears and last is clears[-1] else None


def _is_habit(lossy: Sequence[tuple[Turn, Lost]], turns: Sequence[Turn]) -> bool:
    lost = sum(turn.count * loss.passes for turn, loss in lossy)
    ran = sum(turn.count * turn.own_passes() for turn in turns)
    if lost < MIN_ROUNDS or lost < _LOST * ran or not is_habit([turn for turn, _ in lossy], turns):
        return False
    return is_regular(lossy)


def _finding(
    evidence: Evidence,
    optimizer: Optimizer,
    found: Sequence[tuple[Turn, Lost]],
    turns: Sequence[Turn],
    *,
    everything: bool,
) -> Finding:
    turn, loss = found[0]
    held = trained_by(evidence, optimizer)
    lost = sum(each.count * other.passes for each, other in found)
    lines = places(loss.clear, loss.first, turn.end)
    who = named(names(held)) if held else "what it holds"
    what = "zero_grad()" if loss.clear.deed is Deed.CLEAR else "Clearing by hand"
    if everything:
        message = (
            f"`{optimizer.name}` finds no gradient in {total(each for each, _ in found)} of "
            f"{counted(total(turns), 'step')}: those of {who} are cleared{at(loss.clear.place)} after backward"
        )
    else:
        message = (
            f"`{what}` wipes {loss.passes} of {passes(turn.own_passes())} into {who} before `{optimizer.name}` steps: "
            f"{passes(lost)} are lost"
        )
    return Finding(
        rule=_SLUG,
        severity=Severity.ERROR,
        tensors=names(held),
        place=lines[0] if lines else optimizer.made_at,
        message=message,
        fix=f"Clear the gradients after `{optimizer.name}.step()`, or before the first backward pass of a round",
        evidence={
            "lost_passes": lost,
            "passes": sum(each.count * each.own_passes() for each in turns),
            "rounds": total(turns),
            "zero_grads": optimizer.zero_grads,
        },
        also=lines[1:],
    )
