"""What was seen since the last step, and which node stands for a tensor's value. No tensor is kept alive."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.multiprocessing.reductions import StorageWeakRef

from whygrad.probe.dataflow.nodes import Cleared, LeafUse, Node, Pass
from whygrad.probe.dataflow.operations import ALIAS, CONSTANT, EXTERNAL, FRESH_LEAF, LEAF
from whygrad.probe.dataflow.spots import Spot, Spots
from whygrad.probe.dataflow.values import Values
from whygrad.probe.dataflow.weak import TensorTable
from whygrad.probe.graph import reached_leaves

MAX_NODES = 200_000
_weakly: Any = StorageWeakRef  # torch leaves it untyped


@dataclass(slots=True)
class _Memory:
    """A storage. Its address is not given to another one while the weak reference exists."""

    reference: Any
    born: Node | None
    written: Node | None = None


@dataclass(slots=True)
class Window:
    """The nodes of a step, and the tables that lead to them."""

    spots: Spots
    nodes: deque[Node] = field(default_factory=lambda: deque(maxlen=MAX_NODES))
    tensors: TensorTable[Node] = field(default_factory=TensorTable)
    leaves: TensorTable[LeafUse] = field(default_factory=TensorTable)
    seen: TensorTable[None] = field(default_factory=TensorTable)  # made from nothing that requires grad
    values: Values[Node] = field(default_factory=Values)
    entries: list[Node] = field(default_factory=list)  # could have taken a value that left torch
    exits: list[Node] = field(default_factory=list)
    passes: list[Pass] = field(default_factory=list)
    reached: TensorTable[list[Pass]] = field(default_factory=TensorTable)
    cleared: TensorTable[Cleared] = field(default_factory=TensorTable)
    created: int = 0
    _memory: dict[int, _Memory] = field(default_factory=dict)
    _written: bool = False

    @property
    def too_large(self) -> bool:
        """Return whether the beginning of the step had to be dropped."""
        return self.created > MAX_NODES

    def add(self, node: Node) -> Node:
        """Keep a node."""
        self.created += 1
        self.nodes.append(node)
        return node

    def bind(self, tensor: torch.Tensor, node: Node) -> Node:
        """Let a node stand for a tensor's value."""
        self.tensors.put(tensor, node)
        if node.held_by_leaf:
            use = self.leaves.get(tensor)
            if use is None:
                self.leaves.put(tensor, LeafUse([node]))
            else:
                use.nodes.append(node)
        key = _storage_key(tensor)
        if key and key not in self._memory:
            self._memory[key] = _Memory(_weakly(tensor.untyped_storage()), node)
        return node

    def write(self, tensor: torch.Tensor, node: Node) -> None:
        """Note that the memory of a tensor got a new value."""
        self._written = True
        memory = self._memory.get(_storage_key(tensor))
        if memory is not None:
            memory.written = node

    def note_seen(self, tensors: Iterable[torch.Tensor]) -> None:
        """Note tensors that were seen being made from nothing that requires grad."""
        for tensor in tensors:
            self.seen.put(tensor, None)

    def release(self, tensor: torch.Tensor) -> None:
        """Forget a tensor, and every weak reference to it."""
        for table in (self.tensors, self.leaves, self.seen, self.reached, self.cleared):
            table.drop(tensor)

    # -- from a tensor to its node ----------------------------------------------------------------------------------

    def node_of(self, tensor: torch.Tensor) -> Node | None:
        """Return the node of a tensor's present value; None if it depends on nothing that requires grad."""
        known = self.tensors.get(tensor)
        content = self._content(tensor, known)
        if content is not known and content is not None:
            return self._alias(tensor, known, content)
        if tensor.requires_grad and (known is None or not known.requires_grad):
            return self._unseen(tensor, known)
        return known

    def constant(self, tensor: torch.Tensor) -> Node | None:
        """Return a node for a tensor without grad that nobody saw being made, in which a value may be hidden."""
        if tensor in self.seen:
            return None
        node = self.add(Node(CONSTANT, self.spots.here(callers=True), floating=is_floating(tensor)))
        self.entries.append(node)
        return self.bind(tensor, node)

    def _content(self, tensor: torch.Tensor, known: Node | None) -> Node | None:
        """Return what the memory of a tensor holds, where that is newer than what is known of the tensor."""
        if not self._memory or (known is not None and not self._written):
            return known
        memory = self._memory.get(_storage_key(tensor))
        if memory is None:
            return known
        if memory.written is not None and (known is None or memory.written.number > known.number):
            return memory.written
        return memory.born if known is None else known

    def _alias(self, tensor: torch.Tensor, known: Node | None, content: Node) -> Node:
        requires_grad = tensor.requires_grad
        held = requires_grad and is_leaf(tensor)
        if known is None and held:  # Variable(t, requires_grad=True): another tensor on the same memory
            return self._fresh_leaf(tensor, content, self.spots.here())
        parents = (content,) if known is None else (known, content)
        live = tuple(p for p in parents if p.requires_grad and (p is known or not held)) if requires_grad else ()
        node = Node(
            ALIAS, content.spot, parents, live, requires_grad, content.floating, tensor.numel(), held_by_leaf=held
        )
        return self.bind(tensor, self.add(node))

    def _unseen(self, tensor: torch.Tensor, known: Node | None) -> Node:
        """Return a node for a tensor that requires grad and was made, or changed, unseen."""
        if is_leaf(tensor):
            if known is not None:
                return self._fresh_leaf(tensor, known, known.spot)
            leaf = Node(LEAF, self.spots.here(), requires_grad=True, size=tensor.numel(), held_by_leaf=True)
            return self.bind(tensor, self.add(leaf))
        leaves = reached_leaves((tensor,)) or {}
        parents = tuple(node for leaf in leaves.values() if (node := self.node_of(leaf)) is not None)
        spot = self.spots.here() if known is None else known.spot
        node = Node(EXTERNAL, spot, parents, parents, requires_grad=True, size=tensor.numel())
        return self.bind(tensor, self.add(node))

    def _fresh_leaf(self, tensor: torch.Tensor, value: Node, spot: Spot) -> Node:
        node = Node(FRESH_LEAF, spot, (value,), requires_grad=True, size=tensor.numel(), held_by_leaf=True)
        return self.bind(tensor, self.add(node))


def is_leaf(tensor: torch.Tensor) -> bool:
    """Return whether a tensor is a leaf."""
    try:
        return tensor.is_leaf
    except RuntimeError:  # a view made under no_grad whose base was written since: autograd refuses to look at it
        return False


def is_floating(tensor: torch.Tensor) -> bool:
    """Return whether a tensor's type can carry a gradient."""
    return tensor.is_floating_point() or tensor.is_complex()


def _storage_key(tensor: torch.Tensor) -> int:
    """Return what identifies a tensor's memory; 0 for tensors without."""
    try:
        return int(tensor.untyped_storage()._cdata)
    except (RuntimeError, NotImplementedError):  # sparse, or a wrapper of another tensor
        return 0
