"""Links that nobody saw: a value left torch, was computed with, and came back.

They are read from the source: the place where the value left lies in the expression that takes a value in, or in a
statement that may have made it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from whygrad.probe.dataflow.nodes import Node
from whygrad.probe.dataflow.operations import Effect
from whygrad.probe.dataflow.slices import escapes, explained_names, feeds
from whygrad.probe.dataflow.spots import Spot

_MAX_PAIRS = 20_000


def text_links(
    left: Iterable[Node], vanished: Iterable[Node], entries: Iterable[Node], users: Mapping[Node, list[Node]]
) -> dict[Node, tuple[Node, ...]]:
    """Return, for each entry, the earlier nodes whose values may have come back there.

    Args:
        left: Nodes of values that left torch.
        vanished: Nodes of tensors that no later operation used, which may live on in tensors that were made unseen.
        entries: Nodes that took a Python or numpy value, and tensors that were made unseen.
        users: Who used each node.
    """
    found: dict[Node, list[Node]] = {}
    left_by_spot, vanished_by_spot = _by_spot(left), _by_spot(vanished)
    takers: dict[tuple[Spot, tuple[Spot, ...]], list[Node]] = {}
    for entry in entries:
        takers.setdefault((entry.spot, _beside(entry, users)), []).append(entry)
    for pairs, ((spot, beside), nodes) in enumerate(takers.items()):
        if pairs * (len(left_by_spot) + len(vanished_by_spot)) > _MAX_PAIRS:
            break
        hidden = [node for node in nodes if node.operation.effect is Effect.CONSTANT]
        for targets, sources, known in ((nodes, left_by_spot, ()), (hidden, vanished_by_spot, beside)):
            for source, made in sources.items() if targets else ():
                if _may_feed(source, spot, known):
                    for target in targets:
                        found.setdefault(target, []).extend(n for n in made if n.number < target.number)
    return {entry: tuple(nodes) for entry, nodes in found.items() if nodes}


def _beside(entry: Node, users: Mapping[Node, list[Node]]) -> tuple[Spot, ...]:
    """Return where the tensors were made that an operation took together with a tensor that was made unseen."""
    if entry.operation.effect is not Effect.CONSTANT:
        return ()
    known = (node.spot for user in users.get(entry, ())[:1] for node in user.parents if node is not entry)
    return tuple(dict.fromkeys(spot for spot in known if spot is not entry.spot))


def _by_spot(nodes: Iterable[Node]) -> dict[Spot, list[Node]]:
    found: dict[Spot, list[Node]] = {}
    for node in nodes:
        found.setdefault(node.spot, []).append(node)
    return found


def _may_feed(source: Spot, target: Spot, beside: tuple[Spot, ...]) -> bool:
    for site in source.sites:
        for taker in target.sites:
            explained = (explained_names(taker, known) for spot in beside for known in spot.sites)
            if feeds(site, taker, frozenset().union(*explained)):
                return True
        if not escapes(site):  # its callers never get the value
            return False
    return False
