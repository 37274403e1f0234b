"""One walk over an autograd graph: its nodes, who consumes what they give, and what their neighbourhood looks like."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

MAX_NODES = 20_000  # a larger graph is not looked at
_ABOVE = 6  # consumers that tell a node from others
_BELOW = 2  # levels of what it consumes


class Walk:
    """The nodes behind some tensors, in the order they were come to."""

    __slots__ = ("_consumers", "indices", "nodes")

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.indices: dict[Any, int] = {}
        self._consumers: list[tuple[int, int]] = []  # of each node: who consumes it, as which input

    def children(self, index: int) -> tuple[int, ...]:
        """Return the indices of the nodes that a node's gradients go to; -1 for an input that needs none."""
        return tuple(self.indices.get(child, -1) for child, _ in self.nodes[index].next_functions)

    def signature(self, index: int) -> int:
        """Return a number that tells a node by its kind and those of its neighbours, in this graph and in others."""
        above: list[Any] = []
        here = index
        while here >= 0 and len(above) < 2 * _ABOVE:
            consumer, place = self._consumers[here]
            above += (place, None if consumer < 0 else type(self.nodes[consumer]))
            here = consumer
        return hash((_below(self.nodes[index], _BELOW), *above))

    def add(self, node: Any, consumer: int, place: int) -> None:
        """Add a node that was come to."""
        self.indices[node] = len(self.nodes)
        self.nodes.append(node)
        self._consumers.append((consumer, place))


def walk(roots: Sequence[torch.Tensor]) -> Walk | None:
    """Return the graph behind some tensors; None if it is too large."""
    found = Walk()
    indices, add = found.indices, found.add
    todo: list[tuple[Any, int, int]] = [(root.grad_fn, -1, place) for place, root in enumerate(roots)]
    while todo:
        node, consumer, place = todo.pop()
        if node is None or node in indices:
            continue
        index = len(found.nodes)
        if index >= MAX_NODES:
            return None
        add(node, consumer, place)
        todo.extend((child, index, number) for number, (child, _) in enumerate(node.next_functions))
    return found


def _below(node: Any, levels: int) -> tuple[Any, ...]:
    if node is None:
        return ()
    if not levels:
        return (type(node),)
    return (type(node), *(_below(child, levels - 1) for child, _ in node.next_functions))


def is_leaf_node(node: Any) -> bool:
    """Return whether a node accumulates the gradient of a leaf."""
    return type(node).__name__ == "AccumulateGrad"
