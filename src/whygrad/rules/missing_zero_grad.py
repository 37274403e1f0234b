"""The gradients of `optimizer` are never cleared: 199 of its 200 steps use those of all steps before as well.

## What it looks for

An optimizer that steps on gradients which are not those of its own loss and round: old ones that nobody cleared, or
those that the loss of another optimizer left behind.

## Why it does not learn

`backward()` adds to `.grad`. Without `zero_grad()` between two steps the gradient of every earlier batch, taken at
weights that are long gone, stays in the sum. It grows with every step and turns into a momentum that nothing damps.

With two optimizers there is a quieter form. The loss of the generator reaches it through the critic and fills the
critic's gradients too. If these are not cleared before the critic's own backward pass, the critic steps on the sum of
its own loss and the generator's, which asks for the opposite.

## What it measures

The order of what happens between two steps of an optimizer, in every round of the run: backward passes that changed
its gradients, everything that cleared them (`zero_grad()` of the optimizer or of a module, `p.grad = None`, zeros
written by hand), steps.

- A round that has a backward pass and no clear adds to the gradients of the step before. It is a habit if that is so in
  at least half of the rounds and in three or more. Accumulating over several batches is no such round: there, one clear
  falls between two steps. A step whose gradients were all assigned by hand uses no sum of several passes.
- A pass whose loss reached this optimizer's tensors only on the way to those of another one, which then stepped, counts
  as left behind if another pass follows without a clear. "On the way" is read from the graph: what the other optimizer
  holds is computed first and enters an operation together with what this one holds. An encoder that several losses
  train is on nobody's way.

## Example

```python bad
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

for _ in range(10):
    loss = (model(torch.randn(16, 4)) - 1).pow(2).mean()
    loss.backward()  # missing-zero-grad
    optimizer.step()
```

## Fix

Clear the gradients once per step, right before the backward pass whose gradients the step is to use.

```python good
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

for _ in range(10):
    loss = (model(torch.randn(16, 4)) - 1).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
```

## When it is fine

An optimizer that keeps a running sum of gradients on purpose, such as dual averaging written by hand.

## See also

[zero-grad-misplaced](zero-grad-misplaced.md): cleared too early. [accumulation-scaling](accumulation-scaling.md).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from whygrad.evidence import Evidence
from whygrad.model import Deed, Finding, Happening, Mark, Optimizer, Severity
from whygrad.rules._base import rule
from whygrad.rules._loop import CLEARS, Turn, has, is_habit, places, total, trained_by, whole_turns
from whygrad.rules._select import names
from whygrad.rules._text import at, counted, named

_SLUG = "missing-zero-grad"


@rule(
    _SLUG,
    title="Gradients of earlier steps or other losses are never cleared",
    severity=Severity.ERROR,
    since="0.1.0",
    explains=("exploding-gradient", "update-too-large", "nonfinite-gradient", "clipped-away", "dead-relu"),
)
def check(evidence: Evidence) -> Iterator[Finding]:
    """Yield a finding for each optimizer that steps on old gradients, or on another loss's."""
    for optimizer in evidence.optimizers:
        turns = [turn for turn in whole_turns(evidence, optimizer) if _uses_what_it_added_up(turn)]
        later = [turn for turn in turns if not turn.round.first]
        carried = [turn for turn in later if not any(turn.clears())]
        mixed = [(turn, passes) for turn in turns if (passes := _left_behind(turn)) is not None]
        if is_habit(carried, later):
            yield _carried(evidence, optimizer, carried, later)
        elif is_habit([turn for turn, _ in mixed], turns):
            yield _mixed(evidence, optimizer, [turn for turn, _ in mixed], turns, mixed[0][1])


def _uses_what_it_added_up(turn: Turn) -> bool:
    """Return whether a step used what backward passes left; gradients assigned by hand are nobody's sum."""
    return turn.stepped and turn.own_passes() > 0 and not has(turn.end, Mark.REPLACED)


def _left_behind(turn: Turn) -> tuple[Happening, Happening] | None:
    """Return the pass of another optimizer's loss that was left behind, and the own pass that added to it."""
    foreign: Happening | None = None
    used = False  # another optimizer has stepped on the foreign pass
    for happening in turn.happenings:
        if happening.deed in CLEARS:
            foreign, used = None, False
        elif happening.deed is Deed.STEP and foreign is not None:
            used = used or not set(happening.optimizers).isdisjoint(foreign.optimizers)
        elif turn.reaches(happening):
            if has(happening, Mark.ON_THE_WAY):
                foreign, used = happening, False
            elif foreign is not None and used:
                return foreign, happening
    return None


def _carried(evidence: Evidence, optimizer: Optimizer, part: Sequence[Turn], whole: Sequence[Turn]) -> Finding:
    held = trained_by(evidence, optimizer)
    last = next(each for each in reversed(part[0].happenings) if part[0].reaches(each))
    steps = total(whole) + 1
    never = "never" if total(part) == total(whole) else "not always"
    lines = places(last, part[0].end)
    return Finding(
        rule=_SLUG,
        severity=Severity.ERROR,
        tensors=names(held),
        place=lines[0] if lines else optimizer.made_at,
        message=(
            f"The gradients of `{optimizer.name}` are {never} cleared: {total(part)} of its {counted(steps, 'step')} "
            f"add up what earlier steps left in {named(names(held)) if held else 'what it holds'}"
        ),
        fix=f"Call `{optimizer.name}.zero_grad()` once per step, before backward",
        evidence={"carried_steps": total(part), "steps": steps, "zero_grads": optimizer.zero_grads},
        also=lines[1:],
    )


def _mixed(
    evidence: Evidence,
    optimizer: Optimizer,
    part: Sequence[Turn],
    whole: Sequence[Turn],
    passes: tuple[Happening, Happening],
) -> Finding:
    foreign, own = passes
    held = trained_by(evidence, optimizer)
    others = [each.name for each in evidence.optimizers if each.id in foreign.optimizers and each.id != optimizer.id]
    whose = f"`{others[0]}`" if others else "another optimizer"
    lines = places(own, foreign, part[0].end)
    return Finding(
        rule=_SLUG,
        severity=Severity.ERROR,
        tensors=names(held),
        place=lines[0] if lines else optimizer.made_at,
        message=(
            f"`{optimizer.name}` steps on two losses in {total(part)} of {counted(total(whole), 'round')}: what the "
            f"backward pass for {whose}{at(foreign.place)} left in {named(names(held))} is not cleared before its own"
        ),
        fix=f"Call `{optimizer.name}.zero_grad()` right before its own backward pass",
        evidence={
            "mixed_steps": total(part),
            "steps": total(whole),
            "foreign_line": foreign.place.line if foreign.place is not None else None,
            "zero_grads": optimizer.zero_grads,
        },
        also=lines[1:],
    )
