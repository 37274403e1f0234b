"""A graph that backward runs through again after the first pass has freed it.

Two mistakes lead here. A tensor is kept with its graph and used again in a later step: a hidden state, a running loss,
a value computed once before the loop; the line that made it is the one to change. Or two losses of one step share a
part of the graph; then the lines of the two backward passes are all there is to say.
"""

from __future__ import annotations

from typing import Any

from whygrad.probe.journal import Call, Pass
from whygrad.probe.postmortem.failure import Failure, Found
from whygrad.probe.saved import Graph, graph_of, is_freed
from whygrad.probe.source import place_or_none, span


def explain_freed(failure: Failure) -> Found:
    """Explain "Trying to backward through the graph a second time"."""
    graph = graph_of(failure.roots())
    freed = _first_freed(failure, graph)
    if freed is None:
        return Found()
    node, by = freed
    way = graph.way(node)
    used = [each for each in way if by.covers(each._sequence_nr())]
    older = [each for each in way if each._sequence_nr() < by.counter]
    again = len(older) < len(way) and _is_next_round(failure, by)
    carried = again and (len(failure.watcher.optimizers) > 0 or older == used)
    kept = older[-1] if carried else used[-1]
    made = failure.journal.made(kept._sequence_nr())
    return Found(
        _name(failure, kept, made, graph.edges[kept][1]),
        "" if made is None else made.operation,
        place_or_none(made.site) if carried and made is not None else None,
        place_or_none(by.site),
    )


def _first_freed(failure: Failure, graph: Graph) -> tuple[Any, Pass] | None:
    """Return the node that the failed pass stopped at, and the pass that had freed it."""
    for node in graph.nodes:
        by = _pass_through(failure, node._sequence_nr())
        if by is not None and is_freed(node):
            return node, by
    return None


def _pass_through(failure: Failure, number: int) -> Pass | None:
    """Return the last pass through a node; None where it could have been one of several on different lines."""
    passes = [each for each in failure.journal.passes if each.covers(number)]
    certain = [each for each in passes if each.nodes is not None]
    if certain:
        return certain[-1]
    return passes[-1] if len({each.site for each in passes}) == 1 else None


def _is_next_round(failure: Failure, by: Pass) -> bool:
    """Return whether a loop has come to the same backward again, in a later step where there are steps."""
    if failure.site is None or by.site is None:
        return False
    same_line = (by.site.code, span(by.site)[0]) == (failure.site.code, span(failure.site)[0])
    stepped = failure.watcher.training.steps > by.steps
    return same_line and (stepped or not len(failure.watcher.optimizers))


def _name(failure: Failure, kept: Any, made: Call | None, position: int) -> str:
    """Return the name of the kept tensor; where it is gone, the one its successor from the same line has."""

    def is_kept(tensor: Any) -> bool:
        return tensor.grad_fn is kept and tensor.output_nr == position

    def is_successor(tensor: Any) -> bool:
        return made is not None and tensor.output_nr == position and failure.made(tensor) == made

    return failure.name_where(is_kept) or failure.made_name(made, position) or failure.name_where(is_successor)
