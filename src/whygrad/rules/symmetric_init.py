"""all 6 units of `left` (+3) started equal and stayed equal to the end: they act as one.

## What it looks for

Rows or columns of a weight that start with the same values and get the same gradient, step after step.

## Why it does not learn

Two units with equal weights on both sides compute the same, get the same gradient and make the same step: they stay
equal for ever, and a layer of a hundred units does what one of them could. Random numbers are there to break that. A
single constant layer is harmless as long as its neighbours are random; the product of two constant factors is not, nor
a stack of layers that all start at one value.

## What it measures

At the first steps with a gradient and then at every doubling of the steps: how far up to 32 units along each dimension
of a parameter (not along the positions of a kernel) are from each other, in their weights and in their gradients. It is
reported when, at each of at least three looks up to the end of the run, every unit had a twin: another one whose
weights differ by less than 0.001 of their size and whose gradient by less than 0.001 of its own. The same sums in
another order differ by 0.000001; units of random weights by 1.4 times their size. Weights that start at zero on purpose
(a residual branch, a low-rank factor, a gate, a head) get different gradients at the first step, or at the one after
it: in 47 programs that train no parameter had a twin for every unit at the second look. Classes that never occur in the
data do get equal gradients; as long as one class does occur, the units are not all equal.

## Example

```python bad
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(6, 12), nn.Tanh(), nn.Linear(12, 1))
for layer in (model[0], model[2]):
    nn.init.constant_(layer.weight, 0.1)  # symmetric-init
    nn.init.zeros_(layer.bias)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for _ in range(20):
    x = torch.randn(32, 6)
    loss = (model(x).squeeze(1) - x[:, 0] * x[:, 1]).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
```

## Fix

Draw the weights at random, at a size that fits the layer; constants are for biases and for the scale of normalisations.

```python good
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(6, 12), nn.Tanh(), nn.Linear(12, 1))
for layer in (model[0], model[2]):
    nn.init.xavier_uniform_(layer.weight)
    nn.init.zeros_(layer.bias)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for _ in range(20):
    x = torch.randn(32, 6)
    loss = (model(x).squeeze(1) - x[:, 0] * x[:, 1]).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
```

## When it is fine

Two layers that are tied on purpose are one tensor, and not compared. A model that is linear in what it is given can
have equal units by the data: features that are copies of each other.

## See also

[zero-gradient](zero-gradient.md): both factors start at zero. [dead-relu](dead-relu.md).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from whygrad.evidence import Evidence
from whygrad.model import Finding, Parameter, Place, Role, Severity, Symmetry
from whygrad.rules._base import rule
from whygrad.rules._select import by_line, names
from whygrad.rules._sizes import is_taught
from whygrad.rules._text import named, number

_SLUG = "symmetric-init"
_MIN_LOOKS = 3
_LATE = 4  # looks come when twice as many steps are done, and not every step is recorded
_KERNELS = "Conv"
_FIRST_OF_KERNEL = 2  # dimensions of a kernel: out, in, and then positions


@rule(
    _SLUG,
    title="Units start equal and stay equal",
    severity=Severity.WARNING,
    since="0.1.0",
    explains=("vanishing-gradient", "update-too-small", "saturated-activation"),
)
def check(evidence: Evidence) -> Iterator[Finding]:
    """Yield one finding for each model in which units start equal."""
    known = {parameter.id: parameter for parameter in evidence.parameters}
    found: dict[int, Symmetry] = {}
    for symmetry in evidence.symmetries:
        parameter = known.get(symmetry.id)
        if parameter is not None and _is_kept(evidence, parameter, symmetry):
            found.setdefault(parameter.id, symmetry)
    group = [parameter for parameter in evidence.parameters_in_order if parameter.id in found]
    for root in dict.fromkeys(parameter.root for parameter in group):
        members = [parameter for parameter in group if parameter.root == root]
        yield _finding(members, [found[member.id] for member in members])


def _is_kept(evidence: Evidence, parameter: Parameter, symmetry: Symmetry) -> bool:
    """Return whether units of a parameter that learns were equal from the start to the end of the run."""
    if parameter.module_type.startswith(_KERNELS) and symmetry.dimension >= _FIRST_OF_KERNEL:
        return False
    last = max(evidence.matrices.steps(Role.WEIGHT), default=0)
    late = _LATE * (symmetry.last_step + 1) > last
    return is_taught(evidence, parameter) and symmetry.looks >= _MIN_LOOKS and late


def _place(parameter: Parameter) -> Place | None:
    return parameter.written_at or parameter.made_at


def _finding(members: Sequence[Parameter], symmetries: Sequence[Symmetry]) -> Finding:
    first = symmetries[0]
    place, *others = [place for place, _ in by_line(members, _place)]
    units = members[0].shape[first.dimension]
    what = "rows" if first.dimension == 0 else "columns"
    difference = max(symmetry.difference for symmetry in symmetries)
    return Finding(
        rule=_SLUG,
        severity=Severity.WARNING,
        tensors=names(members),
        place=place,
        message=f"all {units} {what} of {named(names(members))} started equal to another one and stayed so to step "
        f"{first.last_step}, within {number(difference)} of their size: they act as one",
        fix="Draw the weights at random instead of starting them at a constant",
        evidence={
            "units": units,
            "dimension": first.dimension,
            "looks": first.looks,
            "last_step": first.last_step,
            "difference": difference,
            "gradient_difference": max(symmetry.gradient_difference for symmetry in symmetries),
        },
        also=tuple(place for place in others if place is not None),
    )
