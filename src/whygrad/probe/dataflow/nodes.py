"""Values as nodes, operations as the edges between them."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from types import CodeType

from whygrad.probe.dataflow.operations import Operation
from whygrad.probe.dataflow.spots import Held, Spot
from whygrad.probe.dataflow.switches import Switch

_counter = itertools.count()


@dataclass(slots=True, eq=False)
class Node:
    """A value that depends on a tensor that requires grad: a tensor's, or what left torch. It holds no tensor."""

    operation: Operation
    spot: Spot
    parents: tuple[Node, ...] = ()
    live: tuple[Node, ...] = ()  # the parents that autograd connects it with
    requires_grad: bool = False
    floating: bool = True
    size: int = 1  # elements
    switch: Switch | None = None  # what kept grad mode off
    replaced: Node | None = None  # the value that an in-place write left nothing of
    guessed: tuple[Node, ...] = ()  # values that left torch and that equal numbers say came back here
    held_by_leaf: bool = False  # it is the value of a leaf that requires grad
    names: tuple[Held, ...] = ()  # of a tensor that was made unseen
    backward: CodeType | None = None  # of an autograd.Function
    gave_nothing: bool = False  # an autograd.Function whose backward gave None, or nothing but zeros
    number: int = field(default_factory=_counter.__next__)

    @property
    def is_part(self) -> bool:
        """Return whether it holds only some of the elements of what it was selected from."""
        return self.operation.selects and self.size < max((parent.size for parent in self.live), default=0)


@dataclass(slots=True)
class LeafUse:
    """A leaf that requires grad, and the nodes that stood for its value."""

    nodes: list[Node]
    in_module: bool = False  # used while a module was called


@dataclass(slots=True, eq=False)
class Pass:
    """One backward pass or call of autograd.grad."""

    roots: tuple[Node, ...]
    spot: Spot
    operation: str
    inputs: frozenset[int] | None  # ids of the tensors it was asked for; None: all leaves
    returns: bool  # gradients are returned, `.grad` stays as it is
    number: int = field(default_factory=_counter.__next__)


@dataclass(slots=True, eq=False)
class Cleared:
    """The line that deleted a gradient."""

    spot: Spot
    number: int = field(default_factory=_counter.__next__)
