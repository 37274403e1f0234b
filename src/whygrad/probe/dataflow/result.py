"""What the tracer answers: where the path from a parameter to the loss ends. No torch inside.

PathEnd(kind=cut, cuts=(Cut(kind=detach, operation='detach', place=train.py:31, distance=2),))
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from whygrad.model import Place


class PathKind(StrEnum):
    """How the path from a parameter to the loss ends."""

    REACHED = "reached"  # the gradient arrives
    CUT = "cut"  # the values reach the loss, the gradient is stopped on every way
    IGNORED = "ignored"  # used, but nothing computed from it reaches the loss
    UNUSED = "unused"  # no operation used it
    NON_LEAF = "non-leaf"  # it is the output of an operation: autograd keeps no gradient for it
    CLEARED = "cleared"  # its gradient arrived and was deleted
    RESTRICTED = "restricted"  # backward(inputs=) or autograd.grad was not asked for it
    UNDEFINED = "undefined"  # it is in the graph, but the gradient came back as None
    FROZEN = "frozen"  # it does not require grad
    NO_BACKWARD = "no-backward"  # no backward pass ran
    UNKNOWN = "unknown"  # too much happened in the step to remember all of it


class CutKind(StrEnum):
    """What stops the gradient where the value goes on."""

    DETACH = "detach"
    DATA = "data"  # read through `.data`, or assigned or written to it
    VALUE = "value"  # became a Python or numpy value: item, float, tolist, numpy
    COPY = "copy"  # a fresh tensor was made from it: torch.tensor, nn.Parameter, deepcopy, from_numpy
    NO_GRAD = "no-grad"  # computed while grad mode was off
    NONDIFFERENTIABLE = "nondifferentiable"  # no derivative, or one that is zero everywhere
    OPAQUE = "opaque"  # inside a compiled or scripted module
    CUSTOM = "custom"  # inside an autograd.Function, or returned by one without grad
    OVERWRITTEN = "overwritten"  # an in-place write replaced the value
    FIRST_ORDER = "first-order"  # a gradient taken without create_graph
    FROZEN = "frozen"  # requires_grad was off while it was used


@dataclass(frozen=True, slots=True)
class Cut:
    """One place where a gradient stops."""

    kind: CutKind
    operation: str  # as torch names it: `detach`, `argmax`, `linear`; the class name of an autograd.Function
    place: Place | None
    within: str = ""  # the library function that the line calls and that holds the operation: `Normal.sample`
    reentry: Place | None = None  # where a value that left torch comes back
    mode_place: Place | None = None  # where grad mode was switched off: the `with`, the decorator, the call
    mode_text: str = ""
    inferred: bool = False  # the rest of the way to the loss is known from source text or equal numbers only
    distance: int = 1  # operations between the parameter and the cut, the cut's own included


@dataclass(frozen=True, slots=True)
class PathEnd:
    """The answer for one tensor."""

    kind: PathKind
    cuts: tuple[Cut, ...] = ()  # the one nearest to the parameter first
    ends_at: Place | None = None  # last use, freezing, making, clearing, or the restricted backward pass
    operation: str = ""  # there
    within: str = ""
