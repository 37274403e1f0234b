"""The nodes of an autograd graph and what they saved for backward, looked at and never unpacked.

Unpacking a saved tensor runs the hooks that were set on it: activation checkpointing would compute the layer anew.
"""

from __future__ import annotations

import functools
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch._C._autograd import SavedTensor

MAX_NODES = 200_000
_RAW = "_raw_saved_"
_READABLE = hasattr(SavedTensor, "unpack_hook") and hasattr(SavedTensor, "data")  # else nothing is safe to touch
_FREED = ("second time", "already been freed")


@dataclass(frozen=True, slots=True)
class Graph:
    """The nodes that lead from some tensors to the leaves, each with the edge it was first reached by."""

    nodes: list[Any]  # those that autograd runs first come first
    edges: dict[Any, tuple[Any, int]]  # node -> (node that consumes its output, which output); roots: (None, position)

    def way(self, node: Any) -> list[Any]:
        """Return the nodes from a node to the root that it was reached from, both included."""
        found = []
        while node is not None:
            found.append(node)
            node = self.edges[node][0]
        return found


def graph_of(roots: Iterable[torch.Tensor]) -> Graph:
    """Return the graph behind some tensors; of a very large one, the part nearest to them."""
    edges: dict[Any, tuple[Any, int]] = {}
    todo: deque[tuple[Any, Any, int]] = deque((root.grad_fn, None, root.output_nr) for root in roots)
    while todo and len(edges) < MAX_NODES:
        node, consumer, position = todo.popleft()
        if node is not None and node not in edges:
            edges[node] = (consumer, position)
            todo.extend((parent, node, output) for parent, output in node.next_functions)
    inner = [node for node in edges if not is_leaf_node(node)]
    return Graph(sorted(inner, key=lambda node: -node._sequence_nr()), edges)


def is_leaf_node(node: Any) -> bool:
    """Return whether a node accumulates the gradient of a leaf."""
    return type(node).__name__ == "AccumulateGrad"


def nearest(node: Any, count: int) -> list[Any]:
    """Return about `count` nodes below a node, the nearest first; those of leaves left out."""
    found: dict[Any, None] = {node: None}
    todo = deque([node])
    while todo and len(found) <= count:
        for parent, _ in todo.popleft().next_functions:
            if parent is not None and parent not in found and not is_leaf_node(parent):
                found[parent] = None
                todo.append(parent)
    return list(found)[1:]


@dataclass(frozen=True, slots=True)
class Saved:
    """A tensor that a node saved."""

    node: Any
    attribute: str  # of the node; hands the tensor out after a check
    is_result: bool  # the node's own output, not one of its inputs
    tensor: torch.Tensor | None  # None: freed, or there was none to save

    @property
    def complaint(self) -> str:
        """Return what autograd says when the node wants the tensor back; "" if it gets it."""
        try:
            getattr(self.node, self.attribute)
        except RuntimeError as error:
            return str(error)
        return ""

    @property
    def is_freed(self) -> bool:
        """Return whether a backward pass has freed it."""
        return self.tensor is None and any(text in self.complaint for text in _FREED)


def saved_by(node: Any) -> Iterator[Saved]:
    """Yield what a node saved and no hook has packed away."""
    kind: Any = type(node)
    for raw, checked in _attributes(kind):
        is_result = raw.startswith(_RAW + "result")
        try:
            values = getattr(node, raw)
        except RuntimeError:  # of an autograd.Function that was freed
            yield Saved(node, checked, is_result, None)
            continue
        for value in values if isinstance(values, tuple | list) else (values,):
            if value.unpack_hook is None:
                tensor = value.data if isinstance(value.data, torch.Tensor) else None
                yield Saved(node, checked, is_result, tensor)


@functools.lru_cache(maxsize=1024)
def _attributes(kind: type) -> tuple[tuple[str, str], ...]:
    """Return the attributes of a kind of node that hold saved tensors, raw and checked."""
    if not _READABLE:
        return ()
    if hasattr(kind, "saved_tensors"):  # an autograd.Function
        return (("_raw_saved_tensors", "saved_tensors"),)
    return tuple((name, name.replace(_RAW, "_saved_")) for name in dir(kind) if name.startswith(_RAW))


def is_freed(node: Any) -> bool:
    """Return whether what a node saved was freed by a backward pass."""
    return any(saved.is_freed for saved in saved_by(node))
