"""From a loss that is not finite back to where that began, through a graph whose calls were not watched.

The graph is still there when backward is called: nodes are taken in the order they were made, and what they saved tells
whether their inputs and results were finite. The first of them that is not is the place. Between nodes that saved
nothing there may be several ways; then the constants that came in there decide, or nothing is said.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum

import torch

from whygrad.probe.nonfinite.finite import Finite
from whygrad.probe.nonfinite.values import Values, kind_of
from whygrad.probe.nonfinite.walk import Walk, is_leaf_node

# Nodes that move values about and change none.
_MOVES = frozenset(
    {
        *("T", "View", "UnsafeView", "ReshapeAlias", "Transpose", "Permute", "Slice", "Select", "Expand", "Unsqueeze"),
        *("Squeeze", "Clone", "Split", "Chunk", "Unbind", "Index", "IndexSelect", "Gather", "Alias", "Repeat", "Flip"),
        *("Relu", "Tanh", "Sigmoid", "Detach", "Neg", "Diagonal", "Cat", "Stack"),
    }
)


class State(StrEnum):
    """What is known of a node's result."""

    FINITE = "finite"
    BROKEN = "broken"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Traced:
    """What a graph showed."""

    old: tuple[int, ...] = ()  # ids of leaves that were not finite any more: it began earlier
    node: int | None = None  # index of the node that made it out of finite values
    entries: tuple[int, ...] = ()  # else: nodes that may have made it, or taken it in as a constant
    taker: int | None = None  # the node that was given it, where one saved it
    is_given: bool = False  # to that node, as a constant: it did not arise in this graph
    values: Values | None = None  # of `node`


def trace(graph: Walk, finite: Finite) -> Traced:
    """Return where what is not finite began in a graph."""
    states: dict[int, State] = {}
    inner: list[int] = []
    old: list[int] = []
    for index, node in enumerate(graph.nodes):
        if not is_leaf_node(node):
            inner.append(index)
            continue
        states[index] = State.FINITE
        if finite.is_broken(node.variable):
            old.append(id(node.variable))
    if old:
        return Traced(old=tuple(old))
    for index in sorted(inner, key=lambda i: int(graph.nodes[i]._sequence_nr())):
        values = Values(graph.nodes[index], finite)
        if any(finite.is_broken(tensor) for tensor in values.inputs.values()):
            _, *above = _unknown_above(graph, index, states)
            given = not above and -1 in graph.children(index)
            return Traced(entries=tuple(above), taker=index, is_given=given)
        kind = kind_of(graph.nodes[index])
        if kind in _MOVES and all(states.get(child) is State.FINITE for child in graph.children(index)):
            states[index] = State.FINITE
            continue
        states[index] = _state(kind, values, finite)
        if states[index] is State.BROKEN:
            unsaved = [child for child in graph.children(index) if states.get(child) is State.UNKNOWN]
            if unsaved and not values.inputs:
                return Traced(entries=tuple(_unknown_above(graph, index, states)))
            return Traced(node=index, values=values)
    last = (index for index, state in states.items() if state is State.UNKNOWN)
    return Traced(entries=tuple(sorted(last)))


def _unknown_above(graph: Walk, index: int, states: dict[int, State]) -> Iterator[int]:
    """Yield a node and those that its inputs came through, up to the nearest that are known to be finite."""
    seen = {index}
    todo = [index]
    while todo:
        here = todo.pop()
        yield here
        for child in graph.children(here):
            if child not in seen and states.get(child) is State.UNKNOWN:
                seen.add(child)
                todo.append(child)


def _state(kind: str, values: Values, finite: Finite) -> State:
    if values.results:
        return State.BROKEN if any(finite.is_broken(tensor) for tensor in values.results.values()) else State.FINITE
    again = _AGAIN.get(kind)
    result = None if again is None else again(values)
    if result is None:
        return State.UNKNOWN
    return State.BROKEN if finite.is_broken(result) else State.FINITE


def _unary(function: Callable[[torch.Tensor], torch.Tensor]) -> Callable[[Values], torch.Tensor | None]:
    def again(values: Values) -> torch.Tensor | None:
        tensor = values.get("self")
        return None if tensor is None else function(tensor)

    return again


def _quotient(values: Values) -> torch.Tensor | None:
    above, below = values.get("self"), values.get("other")
    if below is None:
        return None
    return below.reciprocal() if above is None else above / below


def _product(values: Values) -> torch.Tensor | None:
    first, second = values.get("self"), values.get("other")
    return None if first is None or second is None else first * second


def _power(values: Values) -> torch.Tensor | None:
    base, exponent = values.get("self"), values.option("exponent")
    return None if base is None or not isinstance(exponent, int | float) else base**exponent


_AGAIN: dict[str, Callable[[Values], torch.Tensor | None]] = {
    "Log": _unary(torch.log),
    "Log2": _unary(torch.log2),
    "Log10": _unary(torch.log10),
    "Log1P": _unary(torch.log1p),
    "Acos": _unary(torch.acos),
    "Asin": _unary(torch.asin),
    "Acosh": _unary(torch.acosh),
    "Atanh": _unary(torch.atanh),
    "Sinh": _unary(torch.sinh),
    "Cosh": _unary(torch.cosh),
    "Abs": _unary(torch.abs),
    "Div": _quotient,
    "Mul": _product,
    "Pow": _power,
}


def inputs_of(values: Values | None) -> list[torch.Tensor]:
    """Return what a node was given, as far as it saved it."""
    return [] if values is None else list(values.inputs.values())
