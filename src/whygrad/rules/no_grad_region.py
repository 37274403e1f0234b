"""`mixer.weight` (+1) got no gradient in 40 steps: `mixer` ran under `torch.no_grad()` at train.py:31.

## What it looks for

Parameters that were to learn, whose path to the loss runs through a stretch that was computed while grad mode was off:
under `torch.no_grad()`, `torch.inference_mode()` or after `torch.set_grad_enabled(False)`.

## Why it does not learn

While grad mode is off, operations record nothing: their results do not require grad, whatever went in. Backward ends
there. The switch may stand far from the line that suffers: in a decorator, in a caller, or in a helper that calls
`torch.set_grad_enabled(False)` and never switches it on again, for the whole process. A tensor that was made under
`inference_mode` cannot even be used later: "Inference tensors cannot be saved for backward".

## What it measures

In the traced steps: the operations that depend on a parameter, that the loss depends on, and that ran while grad mode
was off, with the line that switched it. Over the whole run: backward passes that reached the parameter (none), and
steps at which it had a gradient (none).

Teachers, target networks and features are computed under `no_grad` on purpose: nothing is said while another path
brings the parameter a gradient, where no optimizer holds it, or where its value moves without an optimizer. It is an
info for what runs in eval mode, or was loaded with `load_state_dict`, while the rest trains. A whole term of the loss
that was computed while grad mode was off has no effect; that is a warning, whatever else its parameters learn from.

It is an info, too, where a whole network only makes the target of a comparison and the rest of its optimizer learns to
meet it (random network distillation): such a network is often held by habit.

After the traced steps a switch is found when backward raises because of it: in the source of the functions that made
the loss, or, where grad mode was still off at the end, as the one line of the program that switches it off for good.

## Example

```python bad
import torch
from torch import nn

torch.manual_seed(0)
encoder, head = nn.Linear(4, 8), nn.Linear(8, 1)
model = nn.Sequential(encoder, head)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

for _ in range(5):
    with torch.no_grad():  # no-grad-region
        hidden = encoder(torch.randn(16, 4)).relu()
    loss = (head(hidden) - 1).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
```

## Fix

End the region before the first line that is to be differentiated, or give the decorator to the evaluation only.

```python good
import torch
from torch import nn

torch.manual_seed(0)
encoder, head = nn.Linear(4, 8), nn.Linear(8, 1)
model = nn.Sequential(encoder, head)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

for _ in range(5):
    hidden = encoder(torch.randn(16, 4)).relu()
    loss = (head(hidden) - 1).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
```

## When it is fine

A part that is to stay as it is, and that the optimizer was given by a `model.parameters()`. Leave it out there, or call
`requires_grad_(False)` on it.

## See also

[detached](detached.md): a value taken out of the graph. [reentrant-checkpoint](reentrant-checkpoint.md): grad mode is
off inside a reentrant checkpoint.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from whygrad.evidence import Evidence
from whygrad.model import Cut, CutKind, Finding, Raised, Severity
from whygrad.rules._base import rule
from whygrad.rules._cuts import FOLLOWS, Case, cut_findings, is_checkpoint
from whygrad.rules._raised import GRAD_SWITCHES, NO_GRADIENT, raised_finding, raised_for, subject
from whygrad.rules._select import names
from whygrad.rules._text import at

_SLUG = "no-grad-region"
_INFERENCE = "inference-tensor"
_FOR_A_WHILE = "Switch grad mode off with `with torch.no_grad():` around what needs it, which switches it on again"


@rule(
    _SLUG,
    title="What should learn is computed while grad mode is off",
    severity=Severity.ERROR,
    since="0.1.0",
    explains=FOLLOWS,
)
def check(evidence: Evidence) -> Iterator[Finding]:
    """Yield one finding for each switch that keeps parameters from learning."""
    found = list(cut_findings(evidence, Case(_SLUG, _is_mine, lambda cut: cut.mode_at or cut.place, _what, _fix)))
    yield from found
    inference, unseen = raised_for(evidence, _INFERENCE), raised_for(evidence, NO_GRADIENT)
    if inference is not None:
        yield _of_inference(inference)
    if unseen is not None and unseen.operation in GRAD_SWITCHES and not found:
        learned = [p for p in evidence.parameters if p.optimizers and p.requires_grad and p.reached]
        if learned:
            yield replace(_of_mode(unseen), tensors=names(learned))


def _of_inference(raised: Raised) -> Finding:
    made, used = at(raised.made_at), at(raised.place)
    message = f"{subject(raised)} was made under inference_mode{made}, so backward cannot use it{used}"
    fix = "Use torch.no_grad() there in place of inference_mode, or clone() the tensor outside of it"
    return raised_finding(_SLUG, raised, raised.made_at, message, fix)


def _of_mode(raised: Raised) -> Finding:
    """Return the finding about a switch that was thrown after the traced steps."""
    switched = f"`{raised.operation}`{at(raised.changed_at)}"
    message = f"grad mode was off when {subject(raised)} was computed: {switched} switched it off"
    return raised_finding(_SLUG, raised, raised.changed_at, message, _FOR_A_WHILE)


def _is_mine(cut: Cut) -> bool:
    return cut.kind is CutKind.NO_GRAD and not is_checkpoint(cut)


def _what(cut: Cut) -> str:
    computed = f"`{cut.operation}`{at(cut.place)} ran" if cut.operation else f"what is computed{at(cut.place)} runs"
    if not cut.mode:
        return f"{computed} while grad mode was off"
    return f"{computed} under `{cut.mode}`{at(cut.mode_at)}"


def _fix(cut: Cut) -> str:
    if "set_grad_enabled" in cut.mode:
        return _FOR_A_WHILE
    mode = f"`{cut.mode}`" if cut.mode else "the region without gradients"
    return f"Take what is to learn out of {mode}"
