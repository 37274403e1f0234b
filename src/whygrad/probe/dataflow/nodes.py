"""What a traced step left behind: values as nodes, operations as edges between them. No tensor is kept alive."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.multiprocessing.reductions import StorageWeakRef

from whygrad.probe.dataflow.operations import CONSTANT, LEAF, Operation
from whygrad.probe.dataflow.spots import Spot
from whygrad.probe.dataflow.switches import Switch
from whygrad.probe.dataflow.values import Values
from whygrad.probe.dataflow.weak import TensorTable

MAX_NODES = 200_000
_weakly: Any = StorageWeakRef  # torch leaves it untyped
_counter = itertools.count()


@dataclass(slots=True, eq=False)
class Node:
    """A value that depends on a tensor that requires grad: a tensor's, or what left torch."""

    operation: Operation
    spot: Spot
    parents: tuple[Node, ...] = ()
    live: tuple[Node, ...] = ()  # the parents that autograd connects it with
    requires_grad: bool = False
    floating: bool = True
    switch: Switch | None = None  # what kept grad mode off
    replaced: Node | None = None  # the value that an in-place write left nothing of
    guessed: tuple[Node, ...] = ()  # values that left torch and that equal numbers say came back here
    held_by_leaf: bool = False  # it is the value of a leaf that requires grad
    returned_none: bool = False  # an autograd.Function whose backward gave no gradient
    number: int = field(default_factory=_counter.__next__)


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


@dataclass(slots=True)
class _Memory:
    """A storage. Its address is not given to another one while the weak reference exists."""

    reference: Any
    born: Node | None
    written: Node | None = None


@dataclass(slots=True)
class Window:
    """Everything since the last step."""

    nodes: deque[Node] = field(default_factory=lambda: deque(maxlen=MAX_NODES))
    tensors: TensorTable[Node] = field(default_factory=TensorTable)
    leaves: TensorTable[LeafUse] = field(default_factory=TensorTable)
    seen: TensorTable[None] = field(default_factory=TensorTable)  # known to depend on nothing that requires grad
    values: Values[Node] = field(default_factory=Values)
    entries: list[Node] = field(default_factory=list)  # could have taken a value that left torch
    exits: list[Node] = field(default_factory=list)
    passes: list[Pass] = field(default_factory=list)
    reached: TensorTable[list[Pass]] = field(default_factory=TensorTable)
    cleared: TensorTable[Pass] = field(default_factory=TensorTable)
    created: int = 0
    _memory: dict[int, _Memory] = field(default_factory=dict)
    _written: bool = False

    def add(self, node: Node) -> Node:
        """Keep a node."""
        self.created += 1
        self.nodes.append(node)
        return node

    @property
    def too_large(self) -> bool:
        """Return whether the beginning of the step had to be dropped."""
        return self.created > MAX_NODES

    def bind(self, tensor: torch.Tensor, node: Node) -> None:
        """Let a node stand for a tensor's value."""
        self.tensors.put(tensor, node)
        if node.held_by_leaf:
            use = self.leaves.get(tensor)
            if use is None:
                self.leaves.put(tensor, LeafUse([node]))
            else:
                use.nodes.append(node)
        key = storage_key(tensor)
        if key and key not in self._memory:
            self._memory[key] = _Memory(_weakly(tensor.untyped_storage()), node)

    def leaf(self, tensor: torch.Tensor, spot: Spot) -> Node:
        """Return the node of a leaf that requires grad and that is met for the first time."""
        node = self.add(Node(LEAF, spot, requires_grad=True, held_by_leaf=True))
        self.bind(tensor, node)
        return node

    def constant(self, tensor: torch.Tensor, spot: Spot) -> Node:
        """Return the node of a tensor without grad that nobody saw being made."""
        node = self.add(Node(CONSTANT, spot, floating=tensor.is_floating_point()))
        self.bind(tensor, node)
        self.entries.append(node)
        return node

    def write(self, tensor: torch.Tensor, node: Node) -> None:
        """Note that the memory of a tensor got a new value."""
        self._written = True
        key = storage_key(tensor)
        if key:
            memory = self._memory.get(key)
            if memory is None:
                memory = self._memory[key] = _Memory(_weakly(tensor.untyped_storage()), None)
            memory.written = node

    def content(self, tensor: torch.Tensor, known: Node | None) -> Node | None:
        """Return what the memory of a tensor holds, where that is newer than what is known of the tensor."""
        if not self._memory or (known is not None and not self._written):
            return known
        memory = self._memory.get(storage_key(tensor))
        if memory is None:
            return known
        if memory.written is not None and (known is None or memory.written.number > known.number):
            return memory.written
        return memory.born if known is None else known

    def note_seen(self, tensors: Iterable[torch.Tensor]) -> None:
        """Note tensors that were seen being made from nothing that requires grad."""
        for tensor in tensors:
            self.seen.put(tensor, None)


def storage_key(tensor: torch.Tensor) -> int:
    """Return what identifies a tensor's memory; 0 for tensors without."""
    try:
        return int(tensor.untyped_storage()._cdata)
    except (RuntimeError, NotImplementedError):  # sparse, or a wrapper of another tensor
        return 0


def is_leaf(tensor: torch.Tensor) -> bool:
    """Return whether a tensor is a leaf."""
    try:
        return tensor.is_leaf
    except RuntimeError:  # a view made under no_grad whose base was written since: autograd refuses to look at it
        return False
