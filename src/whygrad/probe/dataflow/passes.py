"""Backward passes: what each was called on, and which leaves autograd leads it to."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from whygrad.probe.dataflow.nodes import Pass
from whygrad.probe.dataflow.spots import Spot
from whygrad.probe.dataflow.window import Window
from whygrad.probe.graph import reached_leaves

MAX_PASSES = 10_000


def note_pass(
    window: Window, roots: Sequence[torch.Tensor], inputs: Sequence[torch.Tensor] | None, spot: Spot, *, returns: bool
) -> None:
    """Note a backward pass that is about to run."""
    if len(window.passes) >= MAX_PASSES:
        return
    nodes = tuple(node for root in roots if (node := window.node_of(root)) is not None)
    wanted = None if inputs is None else frozenset(map(id, inputs))
    operation = "autograd.grad" if returns else "backward"
    made = Pass(nodes, spot, operation, wanted, returns)
    window.passes.append(made)
    for leaf in (reached_leaves(roots) or {}).values():
        passes = window.reached.get(leaf)
        if passes is None:
            window.reached.put(leaf, [made])
        else:
            passes.append(made)


def delivers(each: Pass, tensor: torch.Tensor) -> bool:
    """Return whether a pass that reaches a leaf computes its gradient."""
    return each.inputs is None or id(tensor) in each.inputs
