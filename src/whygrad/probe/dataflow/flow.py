"""Searches in the graph of a step: what reaches the loss, and where on the way the gradient stops."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass

from whygrad.probe.dataflow.nodes import Node

Links = Mapping[Node, tuple[Node, ...]]  # node -> further nodes that its value came from
NO_LINKS: Links = {}
_DRAWING = frozenset(("multinomial", "bernoulli", "poisson", "normal"))


@dataclass(frozen=True, slots=True)
class Stop:
    """An edge that a value passes and a gradient does not."""

    parent: Node
    node: Node
    distance: int  # operations from the parameter to `node`


def ancestors(roots: Iterable[Node], parents: Callable[[Node], Iterable[Node]]) -> dict[Node, int]:
    """Return the nodes that a way along `parents` leads to from `roots`, each with the length of the shortest."""
    found = dict.fromkeys(roots, 0)
    todo = deque(found)
    while todo:
        node = todo.popleft()
        for parent in parents(node):
            if parent not in found:
                found[parent] = found[node] + 1
                todo.append(parent)
    return found


def successors(nodes: Iterable[Node], parents: Callable[[Node], Iterable[Node]]) -> dict[Node, list[Node]]:
    """Return who uses each node, among `nodes`."""
    found: dict[Node, list[Node]] = {}
    for node in nodes:
        for parent in parents(node):
            found.setdefault(parent, []).append(node)
    return found


class Flow:
    """The ways that values take to the roots of the backward passes.

    Args:
        roots: The nodes that backward was called on.
        links: Links beyond what was seen, by equal numbers or source text.
    """

    def __init__(self, roots: Iterable[Node], links: Links = NO_LINKS) -> None:
        self._roots = tuple(roots)
        self._links = links
        self.reaching = ancestors(self._roots, self.sources)
        self._users = successors(self.reaching, self.sources)
        # nodes that reach a root without passing through another parameter's value
        self.directly = ancestors(self._roots, lambda node: () if node.held_by_leaf else self.sources(node))

    def sources(self, node: Node) -> tuple[Node, ...]:
        """Return the nodes whose values a node was computed from."""
        more = self._links.get(node)
        return node.parents if more is None else node.parents + more

    def users(self, node: Node) -> list[Node]:
        """Return the nodes on the way to a root that were computed from a node."""
        return self._users.get(node, [])

    def stops(self, start: Iterable[Node], passes: Callable[[Node, Node], bool]) -> list[Stop]:
        """Return the first edges on each way from `start` to a root that `passes(parent, node)` denies.

        The one on the shortest way to a root comes first: a state that is carried on from one batch to the next, cut
        on purpose, makes a long one. Those that lead through the value of another parameter come later, then those
        where a sample is drawn, which may be for a policy's gradient, and last those that lead on to a second stop
        only, past which the gradient would not get either.
        """
        distance = dict.fromkeys((node for node in start if node in self.reaching), 0)
        todo = deque(distance)
        ahead = self._ahead_of(set(distance))
        blocked: list[Stop] = []
        while todo:
            parent = todo.popleft()
            for node in self.users(parent):
                if node not in ahead:
                    continue
                if not passes(parent, node):
                    blocked.append(Stop(parent, node, distance[parent] + 1))
                elif node not in distance:
                    distance[node] = distance[parent] + 1
                    todo.append(node)
        real = [stop for stop in blocked if stop.node not in distance and not _is_inner(stop.node, distance)]
        # nodes that reach a root other than through a node that has the gradient up to another stop
        last = ancestors(self._roots, lambda node: () if node in distance else self.sources(node)) if real[1:] else ()
        return sorted(real, key=lambda stop: (stop.node not in last, self._rank(stop)))

    def _rank(self, stop: Stop) -> tuple[bool, bool, int, int, int]:
        direct = stop.node in self.directly
        ahead = (self.directly if direct else self.reaching)[stop.node]
        drawn = stop.node.operation.name in _DRAWING
        return drawn, not direct, stop.distance + ahead, stop.distance, stop.node.number

    def _ahead_of(self, start: set[Node]) -> Collection[Node]:
        """Return the nodes on the ways from `start` to a root that do not lead through `start` again.

        A parameter that is written in place, under no_grad, has several nodes.
        """
        if len(start) < 2:
            return self.reaching
        return ancestors(self._roots, lambda node: () if node in start else self.sources(node))


def _is_inner(node: Node, reached: Collection[Node]) -> bool:
    """Return whether a node lies in the forward of an autograd.Function that itself passes the gradient on."""
    switch = node.switch
    return switch is not None and switch.result is not None and (switch.replayed or switch.result in reached)


def connects(parent: Node, node: Node) -> bool:
    """Return whether autograd passes a gradient from a node to its parent."""
    return parent in node.live


def carries(parent: Node, node: Node) -> bool:
    """Return whether that gradient is more than zeros."""
    return connects(parent, node) and not (node.operation.flat or node.gave_nothing)
