"""Values of traced steps as nodes: which operation made each, of which others. They hold no tensor."""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from whygrad.probe.losses.names import ACTIVATIONS

if TYPE_CHECKING:
    import torch

    from whygrad.probe.losses.measures import LossLook
    from whygrad.probe.source import Site

Shape = tuple[int, ...]


@dataclass(slots=True, eq=False)
class SoftmaxLook:
    """One call of softmax or log_softmax."""

    dim: int
    from_product: bool  # its input is a matrix product: scores of attention
    uses: list[tuple[int, str, Site | None]] = field(default_factory=list)  # dimension that is used up, how, where


@dataclass(frozen=True, slots=True)
class Soft:
    """That a value still holds the result of a softmax."""

    look: SoftmaxLook
    axes: tuple[int | None, ...]  # for each dimension of the value, that of the softmax's result it stems from
    weighted: bool = False  # multiplied with something: summing it pools that


@dataclass(slots=True, eq=False)
class Value:
    """A tensor's value."""

    operation: str  # "" for what was made unseen
    site: Site | None
    shape: Shape
    parents: tuple[Value, ...] = ()
    passes: bool = False  # the operation leaves the kind of its first parent's value alone
    learns: bool = False  # requires grad
    leaf: weakref.ref[torch.Tensor] | None = None  # of a parameter
    made_by: Site | None = None  # of an activation: where its module was made, if the user's line calls a container
    softmax: SoftmaxLook | None = None
    soft: Soft | None = None
    loss: LossLook | None = None
    is_outer: bool = False  # a flat operand was spread over the columns of a column vector
    is_scrambled: bool = False  # a reshape where a dimension seems to move
    is_zero: bool = False  # a product with a factor that does not learn and is all zero
    inside: str = ""  # library function that the user's line calls
    keeps: int | None = None  # dimension of size 1 that was normalised

    @property
    def place_site(self) -> Site | None:
        """Return where to look: the line that made the module of an activation, else that of the call."""
        return self.made_by or self.site


def source(value: Value) -> Value:
    """Return the value behind what leaves its kind alone: changes of shape, selections, casts."""
    while value.passes and value.parents:
        value = value.parents[0]
    return value


def activation(value: Value) -> Value | None:
    """Return the activation that a value comes straight from, or None."""
    found = source(value)
    return found if found.operation in ACTIVATIONS else None


def ancestors(roots: Iterable[Value]) -> Iterator[Value]:
    """Yield values and all that they were computed from, the nearest first."""
    todo = deque(dict.fromkeys(roots))
    seen = set(map(id, todo))
    while todo:
        value = todo.popleft()
        yield value
        for parent in value.parents:
            if id(parent) not in seen:
                seen.add(id(parent))
                todo.append(parent)


def nearest_parameters(value: Value) -> list[Value]:
    """Return the parameters of the layers that a value comes from, with no other layer in between."""
    todo, seen, found = deque([value]), {id(value)}, []
    while todo:
        one = todo.popleft()
        leaves = [parent for parent in one.parents if parent.leaf is not None]
        found += leaves
        for parent in () if leaves else one.parents:
            if id(parent) not in seen:
                seen.add(id(parent))
                todo.append(parent)
    return list(dict.fromkeys(found))
