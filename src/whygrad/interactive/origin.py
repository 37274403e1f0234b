"""Where an intermediate comes from, if operations made it out of a single leaf.

    self.scale = torch.ones(3, requires_grad=True) * 0.1

is the classic: the tensor that keeps the name is an intermediate, and the leaf that gradients go to has no name at all.
"""

from __future__ import annotations

import functools
import sys
from dataclasses import dataclass
from typing import Any

import torch

from whygrad.interactive.operations import node_name

_MAX_OPERATIONS = 8  # a longer chain is a computation, not the making of a parameter


@dataclass(frozen=True, slots=True)
class Origin:
    """A leaf and the operations on it that gave the tensor, each with this one input that requires grad."""

    nodes: tuple[str, ...]  # names of the autograd nodes, in the order of the program
    held: bool  # something in the program still holds the leaf


def origin_of(tensor: torch.Tensor) -> Origin | None:
    """Return the origin of an intermediate with as many elements as the single leaf it was made of, else None."""
    node: Any = tensor.grad_fn
    names: list[str] = []
    while type(node).__name__ != "AccumulateGrad":
        parents = {parent for parent, _ in node.next_functions if parent is not None}
        if len(parents) != 1 or len(names) == _MAX_OPERATIONS:
            return None
        names.append(node_name(node))
        node = parents.pop()
    if node.variable.numel() != tensor.numel():
        return None
    return Origin(tuple(reversed(names)), held=_references(node) > _references_if_lost())


def _references(accumulate: Any) -> int:
    return sys.getrefcount(accumulate.variable)


@functools.cache
def _references_if_lost() -> int:
    """Return how many references a leaf has that only the graph holds: torch's own bookkeeping differs by version."""
    with torch.inference_mode(mode=False), torch.enable_grad():
        made: Any = torch.ones(1, device="cpu", requires_grad=True) * 1
    return _references(made.grad_fn.next_functions[0][0])
