"""A backward pass, node by node: at which node did finite gradients become NaN or Inf, and which leaves did it reach.

Each node gets a hook that runs after it. The hooks live as long as the graph, so they hold numbers and no node.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from whygrad.probe.nonfinite.finite import Finite

MAX_NODES = 20_000  # of a larger graph, no node is looked at
MAX_FOUND = 8

_Gradients = tuple[torch.Tensor | None, ...]


@dataclass(slots=True)
class Found:
    """A node that made gradients NaN or Inf."""

    node: str  # its kind
    number: int
    is_nan: bool
    leaves: set[int] = field(default_factory=set)  # ids of the leaves whose gradient came to be so


@dataclass(slots=True)
class Pass:
    """One backward pass that is looked at."""

    finite: Finite
    found: list[Found] = field(default_factory=list)
    leaves: dict[int, int] = field(default_factory=dict)  # index of a node that accumulates -> id of its leaf
    open: bool = True
    _handles: list[Any] = field(default_factory=list)
    _from: dict[int, Found | None] = field(default_factory=dict)  # index of a node -> where its bad gradient is from

    def close(self) -> None:
        """Take the hooks out: a graph may be kept."""
        self.open = False
        for handle in self._handles:
            handle.remove()
        self._handles.clear()

    def watch(self, node: Any, index: int, children: tuple[int, ...], guarded: Callable[..., Any]) -> None:
        """Look at a node when the pass has gone through it.

        Args:
            node: The node.
            index: Its number in this pass.
            children: Those of the nodes that its gradients go to.
            guarded: Calls a function such that it never raises.
        """
        kind, number = type(node).__name__, node._sequence_nr()

        def look(given: _Gradients, received: _Gradients) -> None:
            bad = [place for place, gradient in enumerate(given) if self._is_bad(gradient)]
            if bad and len(given) == len(children):
                source = self._source(index, kind, number, [given[place] for place in bad], received)
                for place in bad:
                    self._pass_on(children[place], source)

        def hook(given: _Gradients, received: _Gradients) -> None:
            if self.open:
                guarded(look, given, received)

        self._handles.append(node.register_hook(hook))

    def _is_bad(self, gradient: torch.Tensor | None) -> bool:
        return gradient is not None and self.finite.is_broken(gradient)

    def _source(
        self, index: int, kind: str, number: int, given: Sequence[torch.Tensor | None], received: _Gradients
    ) -> Found | None:
        if index in self._from:
            return self._from[index]
        if any(self._is_bad(gradient) for gradient in received):
            return None  # it came from outside
        source = Found(kind, number, any(each is not None and self.finite.has_nan(each) for each in given))
        if len(self.found) < MAX_FOUND:
            self.found.append(source)
        return source

    def _pass_on(self, child: int, source: Found | None) -> None:
        self._from.setdefault(child, source)
        if source is not None and child in self.leaves:
            source.leaves.add(self.leaves[child])


def watch_pass(roots: Sequence[torch.Tensor], finite: Finite, guarded: Callable[..., Any]) -> Pass | None:
    """Put hooks on all nodes of the graph that a backward pass is about to go through; None if it is too large."""
    watched = Pass(finite)
    indices: dict[Any, int] = {}
    order: list[Any] = []
    todo = [root.grad_fn for root in roots]
    while todo:
        node = todo.pop()
        if node is None or node in indices:
            continue
        indices[node] = len(order)
        order.append(node)
        if len(order) > MAX_NODES:
            return None
        todo.extend(child for child, _ in node.next_functions)
    for index, node in enumerate(order):
        if type(node).__name__ == "AccumulateGrad":
            watched.leaves[index] = id(node.variable)
        else:
            children = tuple(indices[child] if child is not None else -1 for child, _ in node.next_functions)
            watched.watch(node, index, children, guarded)
    return watched
