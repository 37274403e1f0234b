"""Terms of the loss that depend on parameters and give them no gradient: `loss = ce + 0.1 * balance.item()`."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from whygrad.probe.dataflow.cuts import describe
from whygrad.probe.dataflow.flow import Flow, Links, Stop, ancestors, connects
from whygrad.probe.dataflow.nodes import Node
from whygrad.probe.dataflow.operations import Effect
from whygrad.probe.dataflow.result import Cut
from whygrad.probe.dataflow.window import Window

_ADDING = frozenset(("add", "add_", "sub", "sub_", "radd", "rsub", "iadd", "isub", "stack"))
_SCALING = frozenset(("mul", "mul_", "div", "div_", "rmul", "truediv", "neg", "mean", "sum"))


def lost_terms(window: Window, roots: list[Node], links: Links) -> Iterator[tuple[Cut, list[torch.Tensor]]]:
    """Yield the cut of each lost term, with the parameters nearest to it.

    Args:
        window: The step.
        roots: What backward was called on.
        links: Links by equal numbers or source text.
    """
    flow = Flow(roots, links)
    for node in _summing(roots):
        for term in flow.sources(node):
            if not connects(term, node) and term.floating and term.size == 1:
                yield from _cuts_of(term, node, flow, window)


def _summing(roots: list[Node]) -> list[Node]:
    """Return the nodes that add the terms of the loss."""

    def inner(node: Node) -> tuple[Node, ...]:
        if node.operation.name in _ADDING or (node.operation.name in _SCALING and len(node.parents) == 1):
            return node.live
        return ()

    found = ancestors([root for root in roots if root.size == 1], inner)
    return [node for node in found if node.operation.name in _ADDING and node.live]


def _cuts_of(term: Node, user: Node, flow: Flow, window: Window) -> Iterator[tuple[Cut, list[torch.Tensor]]]:
    certain = flow.reaching
    behind = ancestors([term], lambda n: () if n.requires_grad else flow.sources(n))
    for node in (user, *behind):
        parents = [term] if node is user else flow.sources(node)
        for parent in parents:
            if parent.requires_grad and not connects(parent, node):
                cut = describe(Stop(parent, node, 1), flow, certain)
                yield cut, _nearest_parameters(parent, window)


def _nearest_parameters(node: Node, window: Window) -> list[torch.Tensor]:
    """Return the parameters that the last operations before a node took, on every way."""

    def further(at: Node) -> tuple[Node, ...]:
        return () if any(p.held_by_leaf for p in at.live) or at.operation.effect is Effect.LEAF else at.live

    before = ancestors([node], further)
    wanted = {leaf for at in before for leaf in (at, *at.live) if leaf.held_by_leaf}
    return [tensor for tensor, use in window.leaves.alive() if not wanted.isdisjoint(use.nodes)]
