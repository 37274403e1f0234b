"""Whose gradients are a by-product: a loss reaches the generator through the critic, and fills its gradients too."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch

MAX_NODES = 50_000


def on_the_way(roots: Iterable[torch.Tensor], owners: Callable[[torch.Tensor], Iterable[int]]) -> set[tuple[int, int]]:
    """Return the pairs (near, far): what `near` owns is combined with what is computed from what `far` owns.

    `near` then lies between the loss and `far`: there is no way to the gradients of `far` that leaves out those of
    `near`. A graph of more than `MAX_NODES` nodes gives no pairs.

    Args:
        roots: What backward is called on.
        owners: Returns the ids of the optimizers that hold a leaf.
    """
    reached: dict[Any, frozenset[int]] = {}  # node -> owners of the leaves behind it
    direct: dict[Any, frozenset[int]] = {}  # node -> owners of the leaf at the end of a chain without branches
    pairs: set[tuple[int, int]] = set()
    nobody: frozenset[int] = frozenset()
    for node in _children_first(root.grad_fn for root in roots):
        children = _children(node)
        if type(node).__name__ == "AccumulateGrad":
            reached[node] = direct[node] = frozenset(owners(node.variable))
            continue
        reached[node] = nobody.union(*(reached.get(child, nobody) for child in children))
        if len(children) == 1 and children[0] in direct:
            direct[node] = direct[children[0]]
            continue
        near = nobody.union(*(direct.get(child, nobody) for child in children))
        far = nobody.union(*(reached.get(child, nobody) for child in children if child not in direct))
        pairs.update((one, other) for one in near for other in far if one != other)
    return pairs


def _children(node: Any) -> list[Any]:
    return [child for child, _ in node.next_functions if child is not None]


def _children_first(starts: Iterable[Any]) -> Iterator[Any]:
    """Yield the nodes of a graph, each after those it leads to; nothing if there are too many."""
    order: list[Any] = []
    seen: set[Any] = set()
    todo = [(node, False) for node in starts if node is not None]
    while todo:
        node, done = todo.pop()
        if done:
            order.append(node)
        elif node not in seen:
            seen.add(node)
            if len(seen) > MAX_NODES:
                return iter(())
            todo.append((node, True))
            todo.extend((child, False) for child in _children(node))
    return iter(order)
