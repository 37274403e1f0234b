"""`cutoff` got no gradient in 50 steps: `gt` at train.py:17 has no derivative.

## What it looks for

Parameters that were to learn, whose path to the loss runs through an operation without a useful derivative: `argmax`,
`topk` or `sort` of which only the indices are used, a comparison, a cast to integer or bool, `round`, `floor`, `sign`.

## Why it does not learn

An index, a truth value and a rounded number are piecewise constant: a small change of the input changes nothing, and
where they jump there is no slope. PyTorch treats the two families differently. The result of `argmax`, of a comparison
or of `.long()` does not require grad, so the path is cut and `.grad` stays None. `round`, `floor`, `ceil`, `trunc` and
`sign` have a derivative, which is zero everywhere: the gradient arrives, and is zero for ever.

## What it measures

In the traced steps: the operations that depend on a parameter, that the loss depends on, and whose result is no
function that can be differentiated. Over the whole run: no gradient by any path in any step, or a gradient that was
exactly zero in every recorded step (of at least three). A parameter that gets a gradient by another path (the gate
values of a mixture of experts, a straight-through estimator, REINFORCE) is not reported. A whole term of the loss that
such an operation cuts (an accuracy that is added to it) has no effect; that is a warning.

## Example

```python bad
import torch
from torch import nn

torch.manual_seed(0)
score = nn.Linear(4, 1)
head = nn.Linear(4, 1)
parameters = [*score.parameters(), *head.parameters()]
optimizer = torch.optim.SGD(parameters, lr=0.1)

for _ in range(5):
    x = torch.randn(16, 4)
    keep = (score(x) > 0).float()  # nondifferentiable-op
    loss = (head(keep * x) - 1).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
```

## Fix

Use a smooth relative of the operation:

- `argmax`: the expected index under a softmax (soft-argmax), or `gumbel_softmax`;
- indices of `topk` or `sort`: keep the values too, and weight with them what was selected;
- a comparison: `sigmoid((x - threshold) / temperature)`;
- `round`, `floor`, `sign`: straight-through, `x + (x.round() - x).detach()`; for a sign also `tanh`;
- an integer index: interpolate between the two neighbours (`grid_sample` for images);
- a sampled choice: the log-probability times the reward, or a relaxed sample (`rsample`).

```python good
import torch
from torch import nn

torch.manual_seed(0)
score = nn.Linear(4, 1)
head = nn.Linear(4, 1)
parameters = [*score.parameters(), *head.parameters()]
optimizer = torch.optim.SGD(parameters, lr=0.1)

for _ in range(5):
    x = torch.randn(16, 4)
    keep = torch.sigmoid(score(x))
    loss = (head(keep * x) - 1).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
```

## When it is fine

A layer that only sorts or selects and is not meant to learn. Keep it out of the optimizer, or call
`requires_grad_(False)` on it.

## See also

[detached](detached.md): a value taken out of the graph. [zero-gradient](zero-gradient.md): zeros from elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator

from whygrad.evidence import Evidence
from whygrad.model import Cut, CutKind, Finding, Severity
from whygrad.rules._base import rule
from whygrad.rules._cuts import FOLLOWS, Case, cut_findings
from whygrad.rules._text import at

_SLUG = "nondifferentiable-op"

_INDEX = ("argmax", "argmin")
_ORDER = ("topk", "sort", "argsort", "msort", "max", "min", "kthvalue", "median", "mode")
_COMPARISON = ("gt", "ge", "lt", "le", "eq", "ne", "greater", "greater_equal", "less", "less_equal", "not_equal")
_LOGIC = ("logical_and", "logical_or", "logical_not", "isclose", "signbit", "and", "or", "xor", "invert")
_STEP = ("round", "floor", "ceil", "trunc", "fix", "floor_divide", "floordiv")
_SIGN = ("sign", "sgn", "heaviside", "hardshrink")
_CAST = ("long", "int", "short", "char", "byte", "to", "type", "type_as", "index", "tolist")
_BIN = ("bucketize", "searchsorted", "histc", "histogram", "bincount", "unique", "one_hot")
_CHOICE = ("multinomial", "bernoulli", "sample", "poisson")
_PLACE = ("nonzero", "count_nonzero", "any", "all", "bool")

_SUBSTITUTES: tuple[tuple[tuple[str, ...], str], ...] = (
    (_INDEX, "Use the expected index under a softmax (soft-argmax), gumbel_softmax, or a straight-through estimator"),
    (_ORDER, "Use the values too, not the indices alone: weight what was selected with its score"),
    ((*_COMPARISON, *_LOGIC), "Use a smooth step in place of the comparison: `sigmoid((x - threshold) / temperature)`"),
    (_STEP, "Use a straight-through estimator: `x + (rounded - x).detach()`"),
    (_SIGN, "Use `tanh`, a steep sigmoid, or a straight-through estimator: `x + (sign - x).detach()`"),
    (_CAST, "Interpolate between the neighbours of the index (`grid_sample` for images) in place of the integer cast"),
    (_BIN, "Use soft bins: a softmax, or a kernel, over the distances to the bin centres"),
    (_CHOICE, "Train the choice with its log-probability times the reward, or draw a relaxed sample (rsample)"),
    (_PLACE, "Use a soft mask, such as a sigmoid, in place of true and false"),
)
_ANY = "Use a smooth relative of the operation, or a straight-through estimator"


@rule(
    _SLUG,
    title="The path to the loss runs through an operation without a derivative",
    severity=Severity.ERROR,
    since="0.1.0",
    explains=FOLLOWS,
)
def check(evidence: Evidence) -> Iterator[Finding]:
    """Yield one finding for each function in which a path ends in such an operation."""
    case = Case(_SLUG, _is_mine, lambda cut: cut.place, _what, lambda cut: substitute(cut.operation))
    yield from cut_findings(evidence, case)


def _is_mine(cut: Cut) -> bool:
    return cut.kind is CutKind.NONDIFFERENTIABLE


def _what(cut: Cut) -> str:
    return f"`{_word(cut)}`{at(cut.place)} has {_slope(cut)}"


def substitute(operation: str) -> str:
    """Return what is usually done in place of an operation without a derivative."""
    word = _bare(operation)
    return next((fix for words, fix in _SUBSTITUTES if word in words), _ANY)


def _slope(cut: Cut) -> str:
    return "a derivative of zero everywhere" if _bare(cut.operation) in (*_STEP, *_SIGN) else "no derivative"


def _word(cut: Cut) -> str:
    return _bare(cut.operation) or "this operation"


def _bare(operation: str) -> str:
    """Return "gt" for "__gt__", and "round" for "round_" and "torch.round"."""
    return operation.rpartition(".")[2].removesuffix("()").strip("_")
