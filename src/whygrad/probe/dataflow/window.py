"""What was seen since the last step, and which node stands for a tensor's value. No tensor is kept alive."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field

import torch

from whygrad.probe.dataflow.memory import Memory
from whygrad.probe.dataflow.nodes import Cleared, LeafUse, Node, Pass
from whygrad.probe.dataflow.operations import ALIAS, CONSTANT, EXTERNAL, FRESH_LEAF, LEAF
from whygrad.probe.dataflow.spots import Spot, Spots
from whygrad.probe.dataflow.values import Values
from whygrad.probe.dataflow.weak import TensorTable
from whygrad.probe.graph import reached_leaves

MAX_NODES = 200_000


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
    guesses: list[Node] = field(default_factory=list)  # took a number equal to one that did
    exits: list[Node] = field(default_factory=list)
    passes: list[Pass] = field(default_factory=list)
    reached: TensorTable[list[Pass]] = field(default_factory=TensorTable)
    cleared: TensorTable[Cleared] = field(default_factory=TensorTable)
    memory: Memory = field(default_factory=Memory)
    created: int = 0

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
        self.memory.hold(tensor, node)
        return node

    def note_seen(self, tensors: Iterable[torch.Tensor]) -> None:
        """Note tensors that were seen being made from nothing that requires grad."""
        for tensor in tensors:
            self.seen.put(tensor, None)

    def release(self, tensor: torch.Tensor) -> None:
        """Forget a tensor, and every weak reference to it."""
        for table in (self.tensors, self.leaves, self.seen, self.reached, self.cleared):
            table.drop(tensor)

    # -- from a tensor to its node ----------------------------------------------------------------------------------

    def node_of(self, tensor: torch.Tensor, *, before_write: bool = False) -> Node | None:
        """Return the node of a tensor's present value; None if it depends on nothing that requires grad.

        Args:
            tensor: Any tensor.
            before_write: It has just been written in place, and the value before that is wanted.
        """
        known = self.tensors.get(tensor)
        written = self.memory.writes(tensor, -1 if known is None else known.number)
        if written:
            return self._rewritten(tensor, known, written)
        if known is None:
            same = self.memory.same(tensor)
            if same is not None:  # Variable(t), torch.Tensor(t): made unseen, on the same memory
                return self._other_name(tensor, same)
        if tensor.requires_grad and (known is None or not (known.requires_grad or before_write)):
            return self._unseen(tensor, known)
        return known

    def constant(self, tensor: torch.Tensor) -> Node | None:
        """Return a node for a tensor without grad that nobody saw being made, in which a value may be hidden."""
        if tensor in self.seen:
            return None
        spot, names = self.spots.here(callers=True), tuple(self.spots.names_of(tensor))
        node = self.add(Node(CONSTANT, spot, floating=is_floating(tensor), size=tensor.numel(), names=names))
        self.entries.append(node)
        return self.bind(tensor, node)

    def _rewritten(self, tensor: torch.Tensor, known: Node | None, written: list[Node]) -> Node:
        requires_grad = tensor.requires_grad
        held = requires_grad and is_leaf(tensor)
        parents = (*([] if known is None else [known]), *written)
        live = tuple(p for p in parents if p.requires_grad and (p is known or not held)) if requires_grad else ()
        floating, size = is_floating(tensor), tensor.numel()
        node = Node(ALIAS, written[-1].spot, parents, live, requires_grad, floating, size, held_by_leaf=held)
        return self.bind(tensor, self.add(node))

    def _other_name(self, tensor: torch.Tensor, same: Node) -> Node:
        if not tensor.requires_grad:
            return self.bind(tensor, self.add(Node(ALIAS, same.spot, (same,), (), size=same.size)))
        if is_leaf(tensor):
            return self._fresh_leaf(tensor, same, self.spots.here())
        return self._unseen(tensor, None)

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
