"""Is a value only what a loss compares predictions with? That it gives no gradient is then custom, not a mistake."""

from __future__ import annotations

from collections import deque

from whygrad.probe.dataflow.flow import Flow, Stop
from whygrad.probe.dataflow.nodes import Node

_TARGET_LAST = frozenset(
    (
        *("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "kl_div", "cross_entropy"),
        *("binary_cross_entropy", "binary_cross_entropy_with_logits"),
    )
)
_EITHER = frozenset(("sub", "sub_", "rsub", "cosine_similarity", "cdist", "pairwise_distance"))


def is_target(stop: Stop, flow: Flow) -> bool:
    """Return whether the value behind a cut meets what has a gradient only as the target of a comparison."""
    meetings = list(_meetings(stop.node, flow))
    return bool(meetings) and all(_is_comparison(value, node) for value, node in meetings)


def _meetings(start: Node, flow: Flow) -> list[tuple[Node, Node]]:
    """Return the edges on which the value, or what is computed from it alone, meets what requires grad."""
    found = []
    seen = {start}
    todo = deque([start])
    while todo:
        value = todo.popleft()
        for node in flow.users(value):
            if node.requires_grad:
                found.append((value, node))
            elif node not in seen:
                seen.add(node)
                todo.append(node)
    return found


def _is_comparison(value: Node, node: Node) -> bool:
    others = [parent for parent in node.parents if parent is not value]
    if not others or not any(parent in node.live for parent in others):
        return False
    if node.operation.name in _TARGET_LAST:
        return node.parents[-1] is value
    # a difference of two single numbers is a sum of terms of the loss, not a prediction and its target
    return node.operation.name in _EITHER and value.size > 1
