"""From an edge where a gradient stops to what a person calls it."""

from __future__ import annotations

import ast
from collections import deque
from collections.abc import Collection
from dataclasses import replace
from types import CodeType

from whygrad.model import CutKind, Place
from whygrad.probe.dataflow.flow import Flow, Stop
from whygrad.probe.dataflow.nodes import Node
from whygrad.probe.dataflow.operations import Effect
from whygrad.probe.dataflow.result import Cut
from whygrad.probe.dataflow.switches import How
from whygrad.probe.source import line_place, syntax_tree

_BY_EFFECT = {
    Effect.VALUE: CutKind.VALUE,
    Effect.DETACH: CutKind.DETACH,
    Effect.DATA: CutKind.DATA,
    Effect.SET_DATA: CutKind.DATA,
    Effect.ALIAS: CutKind.DATA,  # written past autograd's sight, which only `.data` and `detach()` allow
    Effect.COPY: CutKind.COPY,
    Effect.CONSTANT: CutKind.COPY,
    Effect.GRADIENT: CutKind.FIRST_ORDER,
    Effect.SET_REQUIRES_GRAD: CutKind.FROZEN,
    Effect.OPAQUE: CutKind.OPAQUE,
}
_COPYING = ("deepcopy", "copy")  # functions of Python's copy module, which read `.data` on the way


def describe(stop: Stop, flow: Flow, certain: Collection[Node]) -> Cut:
    """Return the cut at an edge.

    Args:
        stop: The edge.
        flow: The ways to the loss that were searched.
        certain: The nodes from which the loss is reached by links that were seen.
    """
    node = stop.node
    if node.operation.effect is Effect.CONSTANT:  # it went unseen after the last operation that was seen
        node = stop.parent
    reentry = _reentry(stop.node, flow)
    inferred = stop.node not in certain
    if node.replaced is stop.parent:
        return _cut(CutKind.OVERWRITTEN, node, stop, reentry, inferred)
    switch = node.switch
    kind = kind_of(stop)
    cut = _cut(kind, node, stop, reentry, inferred)
    if kind is CutKind.CUSTOM:
        cut = replace(cut, mode_place=return_place(node.backward))
    if switch is None:
        return cut
    if switch.how is How.FUNCTION:  # its forward: what it is called with and where says more than what it does
        kind = CutKind.CUSTOM if switch.outer is None else CutKind.NO_GRAD
        cut = replace(cut, kind=kind, operation=switch.name, place=switch.spot.place, within=switch.spot.within)
        switch = switch.outer
    if kind is not CutKind.NO_GRAD or switch is None:
        return cut
    return replace(cut, mode_place=switch.place, mode_text=switch.text)


def return_place(backward: CodeType | None) -> Place | None:
    """Return the line where the backward of an autograd.Function returns; None where several do."""
    tree = None if backward is None else syntax_tree(backward.co_filename)
    if backward is None or tree is None:
        return None
    lines = [line for _, _, line in backward.co_lines() if line is not None]
    first, last = min(lines), max(lines)
    returns = [n.lineno for n in ast.walk(tree) if isinstance(n, ast.Return) and first <= n.lineno <= last]
    return line_place(backward.co_filename, returns[0], backward.co_name) if len(returns) == 1 else None


def kind_of(stop: Stop) -> CutKind:
    """Return what stops the gradient at an edge."""
    node = stop.node
    if node.spot.within in _COPYING:
        return CutKind.COPY
    effect = node.operation.effect
    if effect is Effect.OPAQUE and node.switch is not None:
        return CutKind.NO_GRAD
    kind = _BY_EFFECT.get(effect)
    if kind is not None:
        return kind
    if not node.floating:
        return CutKind.NONDIFFERENTIABLE
    if node.switch is not None:
        return CutKind.NO_GRAD
    return CutKind.CUSTOM if effect is Effect.CUSTOM else CutKind.NONDIFFERENTIABLE


def _cut(kind: CutKind, node: Node, stop: Stop, reentry: Place | None, inferred: bool) -> Cut:
    return Cut(
        kind,
        node.operation.name,
        node.spot.place,
        node.spot.within,
        reentry,
        inferred=inferred,
        distance=stop.distance,
    )


def _reentry(start: Node, flow: Flow) -> Place | None:
    """Return where a value that left torch, at the cut or behind it, first comes back."""
    seen = {start}
    todo = deque([start])
    while todo:
        node = todo.popleft()
        if node.operation.effect is Effect.CONSTANT:
            return node.spot.place
        users = flow.users(node)
        if node.operation.effect is Effect.VALUE and users:
            return min(users, key=lambda user: user.number).spot.place
        for user in users:
            if user not in seen:
                seen.add(user)
                todo.append(user)
    return None
