"""Gradients are clipped to 1 while they carry the loss scale 65536: what is left of `head.weight` (+3) is 1.5e-05.

## What it looks for

`clip_grad_norm_` or `clip_grad_value_` at a point of the loop where it does not do what it is there for.

## Why it does not learn

Clipping belongs between `backward()` and `step()`, on the gradients that the step will use.

- On gradients that still carry a `GradScaler`'s scale the limit is thousands of times too low. Nearly every batch is
  clipped, and dividing by the scale afterwards leaves almost nothing.
- Before `backward()` there is no gradient to clip, after `step()` it was used already. The program trains unclipped,
  and the first bad batch does the harm that clipping was to prevent.

## What it measures

For each optimizer and each round of the run, whether its gradients are fresh when they are clipped: computed by a
backward pass since the last step or clear, and free of a loss scale. It is a finding where every clip of an optimizer's
gradients is misplaced, in at least half of its rounds and three or more.

Limits that mean no clipping are left alone (`inf`, used to read the norm; one that is at least a twentieth of the scale
and so seems to be scaled itself; after the step also one that was never exceeded): those calls only measure.

## Example

```python bad
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scaler = torch.amp.GradScaler("cpu")

for _ in range(10):
    loss = (model(torch.randn(16, 4)) - 1).pow(2).mean()
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)  # clip-misplaced
    scaler.step(optimizer)
    scaler.update()
```

## Fix

Unscale first.

```python good
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scaler = torch.amp.GradScaler("cpu")

for _ in range(10):
    loss = (model(torch.randn(16, 4)) - 1).pow(2).mean()
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    scaler.step(optimizer)
    scaler.update()
```

## When it is fine

A call that only reads the norm: give it the limit `inf`.

## See also

[clipped-away](clipped-away.md): the limit is too low. [exhausted-iterator](exhausted-iterator.md): it gets no tensor.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from enum import StrEnum

from whygrad.evidence import Evidence
from whygrad.model import Clip, Deed, Finding, Happening, Mark, Optimizer, Severity
from whygrad.rules._base import rule
from whygrad.rules._loop import CLEARS, Turn, has, is_habit, places, total, trained_by, whole_turns
from whygrad.rules._select import names
from whygrad.rules._text import counted, named, number

_SLUG = "clip-misplaced"
_SCALED_LIMIT = 0.05  # of the scale: such a limit seems to be scaled too


class _When(StrEnum):
    """At which point of a round a clip comes."""

    RIGHT = "right"
    SCALED = "scaled"
    BEFORE = "before"  # any backward pass
    AFTER = "after"  # the step


@rule(
    _SLUG,
    title="Gradients are clipped at the wrong point of the loop",
    severity=Severity.ERROR,
    since="0.1.0",
    explains=("clipped-away", "update-too-small", "exploding-gradient", "vanishing-gradient", "fp16-underflow"),
)
def check(evidence: Evidence) -> Iterator[Finding]:
    """Yield a finding for each optimizer whose gradients are clipped at the wrong point only."""
    for optimizer in evidence.optimizers:
        turns = [turn for turn in whole_turns(evidence, optimizer) if turn.own_passes()]
        clips = [(turn, clip, when) for turn in turns for clip, when in _clips(turn) if _limits(evidence, clip, when)]
        if not clips or any(when is _When.RIGHT for _, _, when in clips):
            continue
        same = [each for each in turns if any(other is each for other, _, _ in clips)]
        if is_habit(same, turns):
            yield _finding(evidence, optimizer, clips[0], total(same))


def _clips(turn: Turn) -> Iterator[tuple[Happening, _When]]:
    """Yield each clip of a round, and at which point it comes."""
    fresh = scaled = cleared = False
    for happening in turn.happenings:
        if happening.deed in CLEARS:
            fresh = scaled = False
            cleared = True
        elif turn.reaches(happening):
            fresh, scaled = True, has(happening, Mark.SCALED)
        elif happening.deed is Deed.UNSCALE:
            scaled = False
        elif happening.deed is Deed.CLIP and fresh:
            yield happening, _When.SCALED if scaled else _When.RIGHT
        elif happening.deed is Deed.CLIP:
            yield happening, _When.BEFORE if cleared or turn.round.first else _When.AFTER


def _lines_of(evidence: Evidence, happening: Happening) -> list[Clip]:
    return [clip for clip in evidence.clips if clip.place == happening.place and clip.limit is not None]


def _limits(evidence: Evidence, happening: Happening, when: _When) -> bool:
    """Return whether a clip is meant to limit anything."""
    clips = _lines_of(evidence, happening)
    if not clips:
        return False
    for clip in clips:
        limit = clip.limit or 0.0
        if math.isinf(limit) or (when is _When.SCALED and limit >= _SCALED_LIMIT * (clip.scale or math.inf)):
            return False
        if when is _When.AFTER and clip.measured and not clip.clipped:
            return False
    return True


def _finding(evidence: Evidence, optimizer: Optimizer, found: tuple[Turn, Happening, _When], rounds: int) -> Finding:
    turn, clip, when = found
    held = trained_by(evidence, optimizer)
    line = _lines_of(evidence, clip)[0]
    own = next((each for each in turn.happenings if turn.reaches(each)), None)
    lines = places(clip, own, turn.end)
    return Finding(
        rule=_SLUG,
        severity=Severity.ERROR if when is _When.SCALED else Severity.WARNING,
        tensors=names(held),
        place=lines[0] if lines else optimizer.made_at,
        message=_message(optimizer, line, when, rounds, named(names(held))),
        fix=_fix(optimizer, when),
        evidence={
            "point": when.value,
            "rounds": rounds,
            "calls": line.calls,
            "clipped": line.clipped,
            "limit": line.limit,
            "norm": line.norm,
            "scale": line.scale,
        },
        also=lines[1:],
    )


def _message(optimizer: Optimizer, line: Clip, when: _When, rounds: int, who: str) -> str:
    limit = number(line.limit or 0.0)
    often = f"in {counted(rounds, 'round')}"
    if when is _When.SCALED:
        scale = line.scale or 1.0
        return (
            f"Gradients are clipped to {limit} while they carry the loss scale {number(scale)}, {often}: a norm of "
            f"{number((line.limit or 0.0) / scale)} at most is left for {who}"
        )
    if when is _When.BEFORE:
        return f"Gradients are clipped to {limit} before backward, {often}: there is none yet, {who} trains unclipped"
    return (
        f"Gradients are clipped to {limit} after `{optimizer.name}` has stepped on them, {often}: "
        f"{who} trains unclipped"
    )


def _fix(optimizer: Optimizer, when: _When) -> str:
    if when is _When.SCALED:
        return f"Call `scaler.unscale_({optimizer.name})` before clipping"
    return f"Clip between backward and `{optimizer.name}.step()`"
