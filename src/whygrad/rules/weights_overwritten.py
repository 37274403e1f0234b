"""the weights that `optimizer` had moved were put back 7 times, by 99% of the way: `stem.weight` (+5) does not learn.

## What it looks for

Weights that an optimizer moves, and that something puts back where they were: at each step, or again and again.

## Why it does not learn

The update is lost. The loss may fall for some steps in between, which is why it is seen so late. The usual causes are a
backup that is none (`state_dict()` returns the live tensors, not copies, so that loading it later restores nothing), an
average of the weights that is loaded for validation and stays, a checkpoint or a start value that is loaded in the
loop, and a copy into the weights that stands in the wrong place.

## What it measures

The values of a sample of each weight, around each recorded step and around each `load_state_dict`: what a step left is
compared with what the next step of the same optimizer finds. Where the two differ, something has written in between. Of
each such write, how much of the way from the weight's first value it took back. Reported is

- a weight that after at least four in five steps, five or more, was bit for bit what it had been before the step;
- a weight that was written at least three times so that on average 75% of its way was taken back (25% where
  `load_state_dict` was given the model's own tensors, which restores nothing);
- a weight that was written at least three times, in four of five cases by half of its size or more: it is initialised
  again.

Averages, masks, clipping, a projection onto a norm and Lookahead all write weights between steps, and take back less:
Lookahead half of the last stretch, of which less and less is all of the way. What is only written by `clamp_` and its
like, or set to what `clamp` returns, is kept in a range: a multiplier that starts at its bound returns there. A program
that puts the optimizer back as well (`optimizer.load_state_dict`), or makes a new one, begins anew on purpose, and
weights that two optimizers move are left to the other rules. It is an info where less than half of what the optimizer
holds is put back: that freezes it.

The place is the line that wrote.

## Example

```python bad
import copy
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
best = copy.deepcopy(model.state_dict())
for _ in range(12):
    loss = (model(torch.randn(16, 4)) - 1).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    model.load_state_dict(best)  # weights-overwritten
```

## Fix

Load what is to be restored once, after the loop; keep a clone of each tensor, not a reference to it.

```python good
import copy
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
best, lowest = copy.deepcopy(model.state_dict()), float("inf")
for _ in range(12):
    loss = (model(torch.randn(16, 4)) - 1).pow(2).mean()
    if loss.item() < lowest:
        best, lowest = copy.deepcopy(model.state_dict()), loss.item()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
model.load_state_dict(best)
```

## When it is fine

A search that tries a step and takes it back.

## See also

[trained-copy-discarded](trained-copy-discarded.md): a copy learns, and is thrown away.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from whygrad.evidence import Evidence
from whygrad.model import Event, Finding, Optimizer, Parameter, Place, Severity
from whygrad.rules._base import rule
from whygrad.rules._select import held_by, names, optimizers_of
from whygrad.rules._text import at, counted, named, number

_SLUG = "weights-overwritten"
_MIN_PAIRS = 5
_RESTORED = 0.8  # of the pairs of steps
_MIN_WRITES = 3
_UNDONE = 0.75  # of the way from the first value, on average
_UNDONE_BY_OWN = 0.25
_RESETS = 2  # times that the optimizer is put back as well
_OWN = "own_weights_loaded"
_DRAWING = ("uniform_", "normal_", "trunc_normal_", "orthogonal_")  # and those that initialise by a layer's size
_INITIALISING = ("kaiming_", "xavier_")
_BOUNDING = frozenset(("clamp_", "clamp_min_", "clamp_max_", "clip_", "relu_"))
_ASSIGNING = frozenset(("copy_", "data="))
_BOUND = re.compile(r"\b(?:clamp|clamp_min|clamp_max|clip|relu)\(")
_OVERWRITING = ("copy", "copy_", "data=", "setitem", "set_", "fill_", "zero_")


@rule(
    _SLUG,
    title="What the optimizer moved is put back",
    severity=Severity.ERROR,
    since="0.1.0",
    explains=("update-too-small", "decay-dominates", "constant-loss", "not-in-optimizer", "update-rounded-away"),
)
def check(evidence: Evidence) -> Iterator[Finding]:
    """Yield one finding for each optimizer whose weights are put back."""
    for optimizer in evidence.optimizers:
        held = [p for p in held_by(evidence, optimizer) if p.gradient_steps and not p.stale]
        hit = [p for p in held if _is_put_back(evidence, p) and _is_alone(evidence, p) and not _is_bounded(evidence, p)]
        if hit and not _is_reset(evidence, optimizer):
            yield _finding(evidence, optimizer, hit, whole=2 * _elements(hit) >= _elements(held))


def _is_put_back(evidence: Evidence, parameter: Parameter) -> bool:
    if parameter.compared >= _MIN_PAIRS and parameter.restored >= _RESTORED * parameter.compared:
        return True
    if parameter.overwritten >= _MIN_WRITES and parameter.replaced >= _RESTORED * parameter.overwritten:
        return True
    least = _UNDONE_BY_OWN if parameter.loads and evidence.events_of(_OWN) else _UNDONE
    return parameter.overwritten >= _MIN_WRITES and parameter.undone >= least * parameter.overwritten


def _is_bounded(evidence: Evidence, parameter: Parameter) -> bool:
    """Return whether all that writes it keeps it in a range: a multiplier that starts at its bound returns there."""
    alike = {
        other.id for other in evidence.parameters if other.name == parameter.name
    }  # an earlier fold's has the event
    writes = [event for event in evidence.events_of("weight_written") if event.detail.get("parameter") in alike]
    return bool(writes) and not parameter.loads and all(_is_bounding(event) for event in writes)


def _is_bounding(event: Event) -> bool:
    code = event.place.code if event.place is not None else ""
    return event.subject in _BOUNDING or (event.subject in _ASSIGNING and _BOUND.search(code) is not None)


def _is_alone(evidence: Evidence, parameter: Parameter) -> bool:
    return sum(optimizer.steps > 0 for optimizer in optimizers_of(evidence, parameter)) == 1


def _is_reset(evidence: Evidence, optimizer: Optimizer) -> bool:
    resets = (event for event in evidence.events_of("optimizer_loaded") if event.subject in (optimizer.name, ""))
    return sum(event.count for event in resets) >= _RESETS


def _elements(parameters: Sequence[Parameter]) -> int:
    return sum(parameter.numel for parameter in parameters)


def _finding(evidence: Evidence, optimizer: Optimizer, hit: Sequence[Parameter], *, whole: bool) -> Finding:
    worst = max(hit, key=lambda parameter: parameter.overwritten)
    share = max(worst.undone, worst.restored) / worst.overwritten
    how = f"put back {counted(worst.overwritten, 'time')}, by {number(100 * share)}% of the way"
    if share < _UNDONE_BY_OWN:
        how = f"written {counted(worst.overwritten, 'time')}, {worst.replaced} of them by half of their size or more"
    own = _first(evidence, _OWN)
    places = _places(evidence, optimizer, hit)
    return Finding(
        rule=_SLUG,
        severity=Severity.ERROR if whole else Severity.INFO,
        tensors=names(hit),
        place=places[0] if places else None,
        message=(
            f"the weights that `{optimizer.name}` had moved were {how}: {named(names(hit))} "
            f"{'do' if len(hit) > 1 else 'does'} not learn"
        ),
        fix=_fix(own),
        evidence={
            "overwritten": worst.overwritten,
            "restored": worst.restored,
            "undone": share,
            "replaced": worst.replaced,
            "pairs_of_steps": worst.compared,
            "loads": worst.loads,
            "steps": worst.steps,
            "elements": _elements(hit),
        },
        also=tuple(places[1:]),
    )


def _fix(own: Event | None) -> str:
    if own is None:
        return "Write the weights once, before or after the training, not between its steps"
    return (
        f"Keep clones, {{k: v.clone() for k, v in model.state_dict().items()}}: what load_state_dict is given"
        f"{at(own.place)} are the model's own tensors"
    )


def _first(evidence: Evidence, *kinds: str) -> Event | None:
    return next((event for kind in kinds for event in evidence.events_of(kind)), None)


def _places(evidence: Evidence, optimizer: Optimizer, hit: Sequence[Parameter]) -> list[Place]:
    """Return the lines that write the weights, the likeliest first; where none is known, the step that they undo."""
    loads = [*evidence.events_of(_OWN), *evidence.events_of("weights_loaded")] if any(p.loads for p in hit) else []
    known = {parameter.id for parameter in hit}
    seen = evidence.events_of("weight_written")
    writes = [e for e in seen if e.subject.startswith(_INITIALISING) or e.subject in (*_OVERWRITING, *_DRAWING)]
    near = sorted(writes, key=lambda event: event.detail.get("parameter") not in known)
    blends = [event for event in seen if event.detail.get("parameter") in known]  # mul_ and add_, lerp_
    events = [*loads, *near, *evidence.events_of("write_in_source")] or blends
    places = [*(event.place for event in events), optimizer.stepped_at]
    return list(dict.fromkeys(place for place in places if place is not None))
