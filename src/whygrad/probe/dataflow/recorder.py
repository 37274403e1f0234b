"""From one call of a torch function to nodes: what its results depend on, and what autograd knows of that.

Only what depends on a tensor that requires grad is kept: preparing data leaves no nodes. Everything is looked at after
the call; an in-place operation finds the old value in the node that stood for its target.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import CodeType
from typing import Any

import torch

from whygrad.probe.dataflow.arguments import Call, gather, is_whole, one_by_one, tensors_in
from whygrad.probe.dataflow.nodes import Cleared, Node
from whygrad.probe.dataflow.operations import FREEZE, FRESH_LEAF, Effect, Operation, Takes
from whygrad.probe.dataflow.spots import Spot, Spots
from whygrad.probe.dataflow.switches import UNSEEN, GradSwitches, Switch
from whygrad.probe.dataflow.values import Found
from whygrad.probe.dataflow.weak import TensorTable
from whygrad.probe.dataflow.window import Window, is_floating, is_leaf
from whygrad.probe.graph import reached_leaves
from whygrad.probe.source import Site


@dataclass(slots=True)
class Use:
    """How often a leaf was an operation's input in traced steps, and where last."""

    ref: weakref.ref[torch.Tensor]
    count: int
    site: Site | None


@dataclass(slots=True)
class _Inputs:
    """What a call took. `nodes` and `connected` go with `tensors`, and may go on with values that no tensor holds."""

    tensors: list[torch.Tensor]
    nodes: list[Node | None]
    connected: list[bool]  # requires_grad
    values: Found[Node]

    @property
    def depend(self) -> bool:
        """Return whether anything here depends on a tensor that requires grad."""
        return bool(self.values.exact or self.values.guessed) or any(node is not None for node in self.nodes)


_NOTHING: Found[Node] = Found()
_LEAVING = (Effect.DETACH, Effect.DATA)  # often the last that is seen of a value before it leaves torch


@dataclass(frozen=True, slots=True)
class _Act:
    """What all results of one call have in common."""

    operation: Operation
    inputs: _Inputs
    spot: Spot
    switch: Switch | None  # what kept grad mode off


class Recorder:
    """Writes what it is told of into the present window."""

    def __init__(self, spots: Spots, switches: GradSwitches, in_module: Callable[[], bool]) -> None:
        self.window = Window(spots)
        self.uses: dict[int, Use] = {}
        self.frozen: TensorTable[Spot] = TensorTable()
        self._spots = spots
        self._switches = switches
        self._in_module = in_module

    def call(self, operation: Operation, call: Call, *, grad: bool, spot: Spot | None = None) -> None:
        """Record a call.

        Args:
            operation: What was called.
            call: With what, and what it returned.
            grad: Whether grad mode was on.
            spot: Where it was called, if that is known.
        """
        effect = operation.effect
        if effect in (Effect.VALUE, Effect.LOOK):
            self._exit(operation, call)
        elif effect is Effect.SET_GRAD:
            self._set_grad(call.args)
        elif effect is Effect.GET_GRAD:
            self.window.note_seen(tensors_in(call.result))
        elif effect is Effect.SET_REQUIRES_GRAD:
            self._set_requires_grad(call.args[0])
        elif operation.foreach:
            for each in one_by_one(call):
                self._compute(operation, each, grad, spot)
        else:
            self._compute(operation, call, grad, spot)

    def _compute(self, operation: Operation, call: Call, grad: bool, spot: Spot | None) -> None:
        targets = _targets(operation, call)
        inputs = self._inputs(_taken(operation, call.args), call.kwargs, targets)
        unknown = inputs.values.unknown
        if not (inputs.depend or unknown or self._may_hide(inputs.tensors)):
            self._note_independent(operation, inputs.tensors, call.result)
            return
        self._add_constants(inputs)
        if spot is None or unknown or operation.effect in _LEAVING:
            spot = self._spots.here(callers=unknown or operation.effect in _LEAVING)
        act = _Act(operation, inputs, spot, self._off(grad))
        if targets:
            overwrites = operation.overwrites or (operation.name == "setitem" and is_whole(call.args[1]))
            made = [node for target in targets if (node := self._write(act, target, overwrites)) is not None]
        else:
            made = self._results(act, tensors_in(call.result))
        if unknown:
            self.window.entries += made
        if inputs.values.guessed:
            self.window.guesses += made
        if operation.effect is not Effect.GRADIENT:
            self._count_uses(inputs, spot, made)

    def _may_hide(self, taken: list[torch.Tensor]) -> bool:
        """Return whether a value that left torch may be in a tensor that nobody saw being made."""
        if not self.window.exits:
            return False
        return any(is_floating(tensor) and tensor not in self.window.seen for tensor in taken)

    def _note_independent(self, operation: Operation, taken: list[torch.Tensor], result: Any) -> None:
        sources = taken[1:] if operation.overwrites else taken
        if not operation.leaves_empty and all(tensor in self.window.seen for tensor in sources):
            self.window.note_seen(tensors_in(result))
        for tensor in tensors_in(result):
            if tensor.requires_grad:
                self.window.node_of(tensor)  # a leaf is made: now its line is known

    def _off(self, grad: bool) -> Switch | None:
        return None if grad else self._switches.off or UNSEEN

    def _inputs(self, args: tuple[Any, ...], kwargs: dict[str, Any], written: Sequence[torch.Tensor] = ()) -> _Inputs:
        tensors: list[torch.Tensor] = []
        others: list[Any] = []
        for value in args:
            gather(value, tensors, others)
        for value in kwargs.values():
            gather(value, tensors, others)
        node_of = self.window.node_of
        if written:
            nodes = [node_of(t, before_write=any(t is target for target in written)) for t in tensors]
        else:
            nodes = [node_of(tensor) for tensor in tensors]
        connected = [tensor.requires_grad for tensor in tensors]
        values = self.window.values
        return _Inputs(tensors, nodes, connected, values.find(others) if values else _NOTHING)

    def _add_constants(self, inputs: _Inputs) -> None:
        for index, tensor in enumerate(inputs.tensors):
            if inputs.nodes[index] is None:
                inputs.nodes[index] = self.window.constant(tensor)

    # -- results ----------------------------------------------------------------------------------------------------

    def _results(self, act: _Act, results: list[torch.Tensor]) -> list[Node]:
        made: dict[tuple[int, bool, bool, bool], Node] = {}  # results that are alike share a node
        for tensor in results:
            if any(tensor is taken for taken in act.inputs.tensors):
                continue  # `contiguous()` and the like may return the tensor itself
            requires_grad = tensor.requires_grad
            kind = (tensor.numel(), requires_grad, is_floating(tensor), requires_grad and is_leaf(tensor))
            node = made.get(kind)
            if node is None:
                node = made[kind] = self.window.add(_result_node(act, *kind))
            self.window.bind(tensor, node)
        return list(made.values())

    def _write(self, act: _Act, target: torch.Tensor, overwrites: bool) -> Node | None:
        """Record that a tensor got a new value in place."""
        inputs = act.inputs
        pairs = list(zip(inputs.tensors, inputs.nodes, strict=True))
        old = next((node for tensor, node in pairs if tensor is target), None)
        sources = [(tensor, node) for tensor, node in pairs if tensor is not target and node is not None]
        requires_grad = target.requires_grad
        held = requires_grad and is_leaf(target)
        found = inputs.values
        if not (sources or found.exact or found.guessed or found.unknown) and (held or old is None):
            return None  # a start value, or an update by numbers
        kept = [old] if old is not None and not overwrites else []
        live = [node for node in kept if node.requires_grad]
        if act.switch is None and act.operation.effect is not Effect.SET_DATA:
            live += [node for tensor, node in sources if tensor.requires_grad]
        node = Node(
            act.operation,
            act.spot,
            parents=_unique(*kept, *(node for _, node in sources), *inputs.values.exact),
            live=_unique(*live) if requires_grad else (),
            requires_grad=requires_grad,
            floating=is_floating(target),
            size=target.numel(),
            switch=act.switch,
            replaced=old if overwrites else None,
            guessed=tuple(inputs.values.guessed),
            held_by_leaf=held,
        )
        self.window.bind(target, self.window.add(node))
        if act.operation.effect is not Effect.SET_DATA:  # that gives the target other memory
            self.window.memory.write(target, node)
        return node

    def _exit(self, operation: Operation, call: Call) -> None:
        parents = _unique(*self._inputs(call.args, {}).nodes)
        if not parents:
            return
        node = self.window.add(Node(operation, self._spots.here(callers=True), parents))
        if operation.effect is Effect.VALUE:
            self.window.exits.append(node)
            self.window.values.add(call.result, node)

    # -- attributes -------------------------------------------------------------------------------------------------

    def _set_grad(self, args: tuple[Any, ...]) -> None:
        if (len(args) < 2 or args[1] is None) and self.window.passes:
            self.window.cleared.put(args[0], Cleared(self._spots.here()))

    def _set_requires_grad(self, tensor: torch.Tensor) -> None:
        known = self.window.node_of(tensor)
        spot = self._spots.here()
        if not tensor.requires_grad:
            self.frozen.put(tensor, spot)
            if known is not None and known.requires_grad:
                self.window.bind(tensor, self.window.add(Node(FREEZE, spot, (known,))))
        elif known is not None and not known.requires_grad and is_leaf(tensor):
            node = Node(FRESH_LEAF, spot, (known,), requires_grad=True, held_by_leaf=True)
            self.window.bind(tensor, self.window.add(node))

    def _count_uses(self, inputs: _Inputs, spot: Spot, made: list[Node]) -> None:
        leaves = [t for t, node in zip(inputs.tensors, inputs.nodes, strict=False) if node and node.held_by_leaf]
        if not leaves:
            return
        in_module = self._in_module()
        if not in_module and not any(node.requires_grad and not node.held_by_leaf for node in made):
            return
        for leaf in leaves:
            use = self.uses.get(id(leaf))
            if use is None or use.ref() is not leaf:
                use = self.uses[id(leaf)] = Use(weakref.ref(leaf), 0, None)
            use.count += 1
            use.site = spot.site
            held = self.window.leaves.get(leaf)
            if held is not None:
                held.in_module |= in_module

    # -- what a mode does not see -----------------------------------------------------------------------------------

    def custom(
        self, name: str, given: Any, result: Any, spot: Spot, *, grad: bool, backward: CodeType | None
    ) -> Node | None:
        """Record a call of an autograd.Function; return the node of its outputs that require grad.

        What its forward computed is a parent as well: it may use parameters that were not given to it.
        """
        inputs = self._inputs((given,), {})
        outputs = tensors_in(result)
        inner = [node for tensor in outputs if (node := self.window.tensors.get(tensor)) is not None]
        if not (inputs.depend or inner):
            self.window.note_seen(outputs)
            return None
        inputs.nodes += inner
        inputs.connected += [False] * len(inner)
        made = self._results(_Act(Operation(name, Effect.CUSTOM), inputs, spot, self._off(grad)), outputs)
        for node in made:
            node.backward = backward
        return next((node for node in made if node.requires_grad), None)

    def opaque(self, name: str, inputs: Any, parameters: Sequence[torch.Tensor], result: Any, grad: bool) -> None:
        """Record a module that ran unseen: everything it took may be in everything it returned."""
        outputs = [tensor for tensor in tensors_in(result) if tensor not in self.window.tensors]
        if not outputs:
            return
        taken = self._inputs((inputs, list(parameters)), {})
        reached = reached_leaves(outputs) or {}
        taken.connected = [id(tensor) in reached or not is_leaf(tensor) for tensor in taken.tensors]
        act = _Act(Operation(name, Effect.OPAQUE), taken, self._spots.here(), self._off(grad))
        self._count_uses(taken, act.spot, self._results(act, outputs))


def _result_node(act: _Act, size: int, requires_grad: bool, floating: bool, fresh: bool) -> Node:
    inputs = act.inputs
    parents = _unique(*inputs.nodes, *inputs.values.exact)
    live: tuple[Node, ...] = ()
    if requires_grad and not fresh:
        pairs = zip(inputs.nodes, inputs.connected, strict=True)
        live = _unique(*[node for node, connected in pairs if connected])
    return Node(
        act.operation,
        act.spot,
        parents=parents,
        live=parents if len(live) == len(parents) else live,
        requires_grad=requires_grad,
        floating=floating,
        size=size,
        switch=act.switch,
        guessed=tuple(inputs.values.guessed),
        held_by_leaf=fresh,
    )


def _taken(operation: Operation, args: tuple[Any, ...]) -> tuple[Any, ...]:
    if operation.takes is Takes.ALL:
        return args
    return args[:1] if operation.takes is Takes.FIRST else args[1:]


def _unique(*nodes: Node | None) -> tuple[Node, ...]:
    return tuple([node for node in dict.fromkeys(nodes) if node is not None])


def _targets(operation: Operation, call: Call) -> list[torch.Tensor]:
    """Return the tensors that a call wrote into."""
    args, kwargs, result = call
    out = kwargs.get("out")
    if out is not None:
        return tensors_in(out)
    first = args[0] if args else next(iter(kwargs.values()), None)
    if operation.writes or (operation.inplace_option and result is first):
        return tensors_in(first)
    return []
