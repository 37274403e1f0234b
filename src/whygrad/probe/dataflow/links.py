"""Links that nobody saw: a value left torch, was computed with, and came back.

They are read from the source: the place where the value left lies in the expression that takes a value in, or in a
statement that may have made it.
"""

from __future__ import annotations

from collections.abc import Iterable

from whygrad.probe.dataflow.nodes import Node
from whygrad.probe.dataflow.operations import Effect
from whygrad.probe.dataflow.slices import escapes, feeds
from whygrad.probe.dataflow.spots import Held, Spot

_MAX_PAIRS = 20_000


def text_links(left: Iterable[Node], vanished: Iterable[Node], entries: Iterable[Node]) -> dict[Node, tuple[Node, ...]]:
    """Return, for each entry, the earlier nodes whose values may have come back there.

    Args:
        left: Nodes of values that left torch.
        vanished: Nodes of tensors that no later operation used, which may live on in tensors that were made unseen.
        entries: Nodes that took a Python or numpy value, and tensors that were made unseen.
    """
    found: dict[Node, list[Node]] = {}
    left_at, vanished_at = _by_spot(left), _by_spot(vanished)
    takers: dict[tuple[Spot, tuple[Held, ...]], list[Node]] = {}
    for entry in entries:
        takers.setdefault((entry.spot, entry.names), []).append(entry)
    for count, ((spot, names), targets) in enumerate(takers.items()):
        if count * (len(left_at) + len(vanished_at)) > _MAX_PAIRS:
            break
        unseen = targets[0].operation.effect is Effect.CONSTANT
        for source, made in (*left_at.items(), *(vanished_at.items() if unseen else ())):
            if _may_feed(source, spot, names if unseen else None):
                for target in targets:
                    found.setdefault(target, []).extend(n for n in made if n.number < target.number)
    return {entry: tuple(nodes) for entry, nodes in found.items() if nodes}


def _by_spot(nodes: Iterable[Node]) -> dict[Spot, list[Node]]:
    found: dict[Spot, list[Node]] = {}
    for node in nodes:
        found.setdefault(node.spot, []).append(node)
    return found


def _may_feed(source: Spot, target: Spot, held: tuple[Held, ...] | None) -> bool:
    for site in source.sites:
        for taker in target.sites:
            names = None if held is None else frozenset(h.name for h in held if h.code is taker.code)
            if feeds(site, taker, names):
                return True
        if not escapes(site):  # its callers never get the value
            return False
    return False
