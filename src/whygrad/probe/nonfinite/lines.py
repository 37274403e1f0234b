"""The lines of nodes in steps whose calls were not watched, told by the likeness of their graph to earlier ones.

A node is told by its kind and its neighbours'. Where two lines of the program made nodes that look the same, neither is
named: a wrong line costs more than none.
"""

from __future__ import annotations

from collections.abc import Callable

from whygrad.probe.nonfinite.calls import Made
from whygrad.probe.nonfinite.walk import Walk, is_leaf_node
from whygrad.probe.source import span

MAX_KNOWN = 50_000


class Lines:
    """What was learnt from watched steps."""

    def __init__(self) -> None:
        self._known: dict[int, Made | None] = {}  # signature -> the call; None: several

    def learn(self, graph: Walk, made: Callable[[int], Made | None]) -> None:
        """Learn from a graph whose calls were watched; `made` returns the call that made a node, by its number."""
        if len(self._known) > MAX_KNOWN:
            return
        for index, node in enumerate(graph.nodes):
            if not is_leaf_node(node):
                self._learn(graph.signature(index), made(node._sequence_nr()))

    def of(self, graph: Walk, index: int) -> Made | None:
        """Return the call that makes such a node; None if none is known, or several are."""
        return self._known.get(graph.signature(index))

    def _learn(self, signature: int, made: Made | None) -> None:
        known = self._known.setdefault(signature, made)
        if known is not made and (made is None or known is None or not same_line(known, made)):
            self._known[signature] = None


def same_line(first: Made, second: Made) -> bool:
    """Return whether two calls are of one function, on one line."""
    return first.operation == second.operation and line_of(first) == line_of(second)


def line_of(made: Made) -> tuple[str, int] | None:
    """Return the file and line of a call."""
    return None if made.site is None else (made.site.code.co_filename, span(made.site)[0])
