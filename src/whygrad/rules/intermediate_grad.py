"""`.grad` of `hidden` was None after backward: it is the output of an operation, whose gradient is not kept.

## What it looks for

`.grad` of an intermediate tensor, the output of an operation, that the program reads and gets None.

## Why it does not learn

PyTorch stores gradients in the leaves of the graph only: in parameters and in tensors you made with
`requires_grad=True`. The gradient of an intermediate passes through and is dropped, because keeping all of them would
not fit in memory. `.grad` is then None although the tensor requires grad and backward went through it, and whatever is
computed from it (a penalty, a saliency map, a pruning score, an update by hand) is missing or raises.

## What it measures

Reads of `.grad` that gave None, on a tensor with a `grad_fn`, after at least one backward pass. Two sources see them:
whygrad's tracer in the first steps, which also knows the line that made the tensor, and PyTorch's own warning later on.
A tensor on which `retain_grad()` was called is left out: there the reason is another one.

## Example

```python bad
import torch
from torch import nn

torch.manual_seed(0)
encoder, decoder = nn.Linear(4, 8), nn.Linear(8, 1)
optimizer = torch.optim.SGD([*encoder.parameters(), *decoder.parameters()], lr=0.1)

for step in range(5):
    hidden = encoder(torch.randn(16, 4)).relu()
    loss = decoder(hidden).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, hidden.grad)  # intermediate-grad
```

## Fix

Call `retain_grad()` on the tensor, after it is made and before backward.

```python good
import torch
from torch import nn

torch.manual_seed(0)
encoder, decoder = nn.Linear(4, 8), nn.Linear(8, 1)
optimizer = torch.optim.SGD([*encoder.parameters(), *decoder.parameters()], lr=0.1)

for step in range(5):
    hidden = encoder(torch.randn(16, 4)).relu()
    hidden.retain_grad()
    loss = decoder(hidden).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, hidden.grad.norm())
```

If only its size is of interest, `whygrad.tap(hidden, "hidden")` records statistics and stores nothing;
`torch.autograd.grad(loss, hidden)` returns the gradient without `.grad`.

## When it is fine

Code that prints `.grad` of every tensor it meets and expects None for some of them.

## See also

[nonleaf-parameter](nonleaf-parameter.md): the tensor was meant as a parameter.
[unused-parameter](unused-parameter.md): a leaf whose `.grad` is None.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from whygrad.evidence import Evidence
from whygrad.model import Event, Finding, Severity
from whygrad.rules._base import rule
from whygrad.rules._events import place_in
from whygrad.rules._text import counted, named

_SLUG = "intermediate-grad"


@rule(
    _SLUG,
    title="`.grad` of an intermediate tensor is read, and it is None",
    severity=Severity.ERROR,
    since="0.1.0",
)
def check(evidence: Evidence) -> Iterator[Finding]:
    """Yield one finding for each tensor whose missing gradient was read."""
    events = [event for event in evidence.events_of("intermediate_grad_read") if _is_fault(event)]
    for reads in _by_tensor(events):
        yield _finding(reads)


def _is_fault(event: Event) -> bool:
    after_backward = event.detail.get("backwards", 0) > 0 or event.last_step > event.first_step
    return after_backward and not event.detail.get("retains_grad", False)


def _by_tensor(events: Iterable[Event]) -> list[list[Event]]:
    """Group reads that share a line or a name of the tensor: one tensor is read here and there, under several names."""
    groups: list[tuple[set[object], list[Event]]] = []
    for event in events:
        marks: set[object] = set(_names(event))
        if event.place is not None:
            marks.add((event.place.file, event.place.line))
        same = [group for group in groups if not marks.isdisjoint(group[0])]
        groups = [group for group in groups if marks.isdisjoint(group[0])]
        members = [member for _, earlier in same for member in earlier]
        groups.append((marks.union(*(known for known, _ in same)), [*members, event]))
    return [members for _, members in groups]


def _names(event: Event) -> list[str]:
    return [name for name in (*event.detail.get("names", ()), event.subject) if name]


def _finding(reads: list[Event]) -> Finding:
    first = reads[0]
    tensors = tuple(dict.fromkeys(name for event in reads for name in _names(event)))
    count = sum(event.count for event in reads)
    grad_fn = next((event.detail["grad_fn"] for event in reads if event.detail.get("grad_fn")), "")
    made = [place for event in reads if (place := place_in(event, "made_at")) is not None]
    what = named(tensors[:1]) if tensors else "an intermediate tensor"
    operation = f"of an operation ({grad_fn})" if grad_fn else "of an operation"
    return Finding(
        rule=_SLUG,
        severity=Severity.ERROR,
        tensors=tensors,
        place=first.place,
        message=(
            f"`.grad` of {what} was None after backward ({counted(count, 'read')} seen): it is the output {operation}, "
            "whose gradient is not kept"
        ),
        fix=f"Call `retain_grad()` on {what} before backward, or `whygrad.tap` it if its statistics are enough",
        evidence={"reads": count, "grad_fn": grad_fn, "shape": first.detail.get("shape")},
        also=tuple(dict.fromkeys([*made, *(e.place for e in reads[1:] if e.place is not None)])),
    )
