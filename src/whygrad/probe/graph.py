"""Walks from the loss: which leaves does the autograd graph reach."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch

MAX_NODES = 1_000_000  # a graph kept across iterations can grow without end; the walk must not


def reached_leaves(roots: Iterable[torch.Tensor]) -> dict[int, torch.Tensor] | None:
    """Return the leaf tensors that gradients of `roots` flow to, by id; None if the graph is too large to walk."""
    leaves: dict[int, torch.Tensor] = {}
    seen: set[Any] = set()
    todo: list[Any] = []
    for root in roots:
        if root.grad_fn is not None:
            todo.append(root.grad_fn)
        elif root.requires_grad:
            leaves[id(root)] = root
    while todo:
        node = todo.pop()
        if node in seen:
            continue
        seen.add(node)
        if len(seen) > MAX_NODES:
            return None
        if type(node).__name__ == "AccumulateGrad":
            leaves[id(node.variable)] = node.variable
            continue
        todo.extend(child for child, _ in node.next_functions if child is not None)
    return leaves
