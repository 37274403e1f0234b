"""What the tracer answers: where the path from a parameter to the loss ends. No torch inside.

PathEnd(kind=cut, cuts=(Cut(kind=detach, operation='detach', place=train.py:31, distance=2),))
"""

from __future__ import annotations

from dataclasses import dataclass

from whygrad.model import CutKind, Place
from whygrad.model import PathEnd as PathKind


@dataclass(frozen=True, slots=True)
class Cut:
    """One place where a gradient stops."""

    kind: CutKind
    operation: str  # as torch names it: `detach`, `argmax`, `linear`; the class name of an autograd.Function
    place: Place | None
    within: str = ""  # the library function that the line calls and that holds the operation: `Normal.sample`
    reentry: Place | None = None  # where a value that left torch comes back
    mode_place: Place | None = None  # where grad mode was switched off; of an autograd.Function, where backward returns
    mode_text: str = ""
    inferred: bool = False  # the rest of the way to the loss is known from source text or equal numbers only
    distance: int = 1  # operations between the parameter and the cut, the cut's own included
    as_target: bool = False  # its value is only what a loss compares predictions with


@dataclass(frozen=True, slots=True)
class PathEnd:
    """The answer for one tensor."""

    kind: PathKind
    cuts: tuple[Cut, ...] = ()  # the one nearest to the parameter first
    ends_at: Place | None = None  # last use, freezing, making, clearing, or the restricted backward pass
    operation: str = ""  # there
    within: str = ""
