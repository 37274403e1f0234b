"""A backward pass, node by node: at which node did finite gradients become NaN or Inf, and which leaves did it reach.

Each node gets a hook that runs after it. The hooks live as long as the graph, so they hold numbers and no node.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from whygrad.probe.nonfinite.births import Births, Origin
from whygrad.probe.nonfinite.finite import Finite
from whygrad.probe.nonfinite.walk import Walk, is_leaf_node

MAX_FOUND = 8

_Gradients = tuple[torch.Tensor | None, ...]


@dataclass(slots=True)
class Found:
    """A node that made gradients NaN or Inf."""

    node: str  # its kind
    index: int  # in the walk over its graph
    number: int  # autograd's
    is_nan: bool
    origin: Origin | None = None  # the call that made it, in a backward that is written in Python
    leaves: set[int] = field(default_factory=set)  # ids of the leaves whose gradient came to be so


@dataclass(slots=True)
class Pass:
    """One backward pass that is looked at."""

    finite: Finite
    births: Births
    found: list[Found] = field(default_factory=list)
    leaves: dict[int, int] = field(default_factory=dict)  # index of a node that accumulates -> id of its leaf
    open: bool = True
    handles: list[Any] = field(default_factory=list)
    _from: dict[int, Found | None] = field(default_factory=dict)  # index of a node -> where its bad gradient is from

    def close(self) -> None:
        """Take the hooks out: a graph may be kept."""
        self.open = False
        for handle in self.handles:
            handle.remove()
        self.handles.clear()

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

        self.handles.append(node.register_hook(hook))

    def _is_bad(self, gradient: torch.Tensor | None) -> bool:
        return gradient is not None and self.finite.is_broken(gradient)

    def _source(
        self, index: int, kind: str, number: int, given: Sequence[torch.Tensor | None], received: _Gradients
    ) -> Found | None:
        if index in self._from:
            return self._from[index]
        if any(self._is_bad(gradient) for gradient in received):
            return None  # it came from outside
        bad = [each for each in given if each is not None]
        origin = next((known for each in bad if (known := self.births.of(each)) is not None), None)
        source = Found(kind, index, number, any(map(self.finite.has_nan, bad)), origin)
        if len(self.found) < MAX_FOUND:
            self.found.append(source)
        return source

    def _pass_on(self, child: int, source: Found | None) -> None:
        self._from.setdefault(child, source)
        if source is not None and child in self.leaves:
            source.leaves.add(self.leaves[child])


def watch_pass(graph: Walk, births: Births, guarded: Callable[..., Any]) -> Pass:
    """Put hooks on all nodes of the graph that a backward pass is about to go through."""
    watched = Pass(births.finite, births)
    for index, node in enumerate(graph.nodes):
        if is_leaf_node(node):
            watched.leaves[index] = id(node.variable)
        else:
            watched.watch(node, index, graph.children(index), guarded)
    return watched
