"""From one call of a torch function to nodes: what its results depend on, and what autograd knows of that.

Only what depends on a tensor that requires grad is kept: preparing data leaves no nodes. Everything is looked at after
the call; an in-place operation finds the old value in the node that stood for its target.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from whygrad.probe.dataflow.arguments import gather, is_whole, one_by_one, tensors_in
from whygrad.probe.dataflow.nodes import LeafUse, Node, Pass, Window, is_leaf
from whygrad.probe.dataflow.operations import EXTERNAL, FREEZE, FRESH_LEAF, Effect, Operation
from whygrad.probe.dataflow.spots import Spot, Spots
from whygrad.probe.dataflow.switches import UNSEEN, GradSwitches, Switch
from whygrad.probe.dataflow.weak import TensorTable
from whygrad.probe.graph import reached_leaves
from whygrad.probe.source import Site

_ALIAS = Operation("write", Effect.ALIAS)


@dataclass(slots=True)
class Use:
    """How often a leaf was an operation's input in traced steps, and where last."""

    ref: weakref.ref[torch.Tensor]
    count: int
    site: Site | None


@dataclass(slots=True)
class _Inputs:
    """What a call took: tensors with their nodes, and values that left torch."""

    tensors: list[torch.Tensor]
    nodes: list[Node | None]
    exact: list[Node]
    guessed: list[Node]
    may_come_back: bool

    @property
    def depend(self) -> bool:
        return bool(self.exact or self.guessed) or any(node is not None for node in self.nodes)


class Recorder:
    """Writes what it is told of into the present window."""

    def __init__(self, spots: Spots, switches: GradSwitches, in_module: Callable[[], bool]) -> None:
        self.window = Window()
        self.uses: dict[int, Use] = {}
        self.frozen: TensorTable[Spot] = TensorTable()
        self._spots = spots
        self._switches = switches
        self._in_module = in_module

    # -- what a tensor's value is -----------------------------------------------------------------------------------

    def node_of(self, tensor: torch.Tensor) -> Node | None:
        """Return the node of a tensor's present value; None if it depends on nothing that requires grad."""
        window = self.window
        known = window.tensors.get(tensor)
        content = window.content(tensor, known)
        requires_grad = tensor.requires_grad
        if content is not known and content is not None:
            return self._alias(tensor, known, content)
        if requires_grad and (known is None or not known.requires_grad):
            return self._unseen(tensor, known)
        return known

    def _alias(self, tensor: torch.Tensor, known: Node | None, content: Node) -> Node:
        requires_grad = tensor.requires_grad
        parents = (content,) if known is None else (known, content)
        fresh = requires_grad and is_leaf(tensor)
        if known is None and fresh:  # Variable(t, requires_grad=True): another tensor on the same memory
            return self._bind(tensor, Node(FRESH_LEAF, self._spots.here(), parents, (), True, held_by_leaf=True))
        live = tuple(p for p in parents if p.requires_grad and (p is known or not fresh)) if requires_grad else ()
        node = Node(_ALIAS, content.spot, parents, live, requires_grad, content.floating, held_by_leaf=fresh)
        return self._bind(tensor, node)

    def _unseen(self, tensor: torch.Tensor, known: Node | None) -> Node:
        """Return a node for a tensor that requires grad and was made, or changed, unseen."""
        if is_leaf(tensor):
            if known is None:
                return self.window.leaf(tensor, self._spots.here())
            return self._bind(tensor, Node(FRESH_LEAF, known.spot, (known,), (), True, held_by_leaf=True))
        leaves = reached_leaves((tensor,)) or {}
        parents = tuple(node for leaf in leaves.values() if (node := self.node_of(leaf)) is not None)
        spot = self._spots.here() if known is None else known.spot
        dead = () if known is None else (known,)
        return self._bind(tensor, Node(EXTERNAL, spot, (*parents, *dead), parents, True))

    def _bind(self, tensor: torch.Tensor, node: Node) -> Node:
        self.window.bind(tensor, self.window.add(node))
        return node

    # -- calls ------------------------------------------------------------------------------------------------------

    def call(
        self, operation: Operation, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any, grad: bool
    ) -> None:
        """Record a call; `grad` is whether grad mode was on."""
        effect = operation.effect
        if operation.foreach:
            for each in one_by_one(args, kwargs, result):
                self._compute(operation, *each, grad)
        elif effect in (Effect.VALUE, Effect.LOOK):
            self._exit(operation, args, result)
        elif effect is Effect.SET_GRAD:
            self._set_grad(args)
        elif effect is Effect.GET_GRAD:
            self.window.note_seen(tensors_in(result))
        elif effect is Effect.SET_REQUIRES_GRAD:
            self._set_requires_grad(args[0])
        else:
            self._compute(operation, args, kwargs, result, grad)

    def _compute(
        self, operation: Operation, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any, grad: bool
    ) -> None:
        inputs = self._inputs(args, kwargs)
        if not (inputs.depend or inputs.may_come_back):
            if all(self.window.is_seen(tensor) for tensor in inputs.tensors):
                self.window.note_seen(tensors_in(result))
            return
        entry = inputs.may_come_back or bool(inputs.exact)
        spot = self._spots.here(callers=entry)
        switch = None if grad else self._switches.off or UNSEEN
        self._add_constants(inputs)
        targets = _targets(operation, args, kwargs, result)
        if targets:
            overwrites = operation.overwrites or (operation.name == "setitem" and is_whole(args[1]))
            made = [self._write(operation, target, inputs, spot, switch, overwrites) for target in targets]
        else:
            made = self._results(operation, tensors_in(result), inputs, spot, switch)
        if entry:
            self.window.entries += [node for node in made if node is not None]
        if operation.effect is not Effect.GRADIENT:
            self._count_uses(inputs, spot, result)

    def _inputs(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> _Inputs:
        tensors: list[torch.Tensor] = []
        others: list[Any] = []
        for value in args:
            gather(value, tensors, others)
        for value in kwargs.values():
            gather(value, tensors, others)
        nodes = [self.node_of(tensor) for tensor in tensors]
        values = self.window.values
        if not values:
            return _Inputs(tensors, nodes, [], [], may_come_back=False)
        exact, guessed = values.find(others)
        return _Inputs(tensors, nodes, exact, guessed, values.may_come_back(others))

    def _add_constants(self, inputs: _Inputs) -> None:
        """Give nodes to tensors that nobody saw being made: a value that left torch may be in them."""
        window = self.window
        for index, tensor in enumerate(inputs.tensors):
            if inputs.nodes[index] is None and not window.is_seen(tensor):
                inputs.nodes[index] = window.constant(tensor, self._spots.here(callers=True))

    def _results(
        self,
        operation: Operation,
        results: list[torch.Tensor],
        inputs: _Inputs,
        spot: Spot,
        switch: Switch | None,
    ) -> list[Node | None]:
        taken = {id(tensor) for tensor in inputs.tensors}
        made: dict[tuple[bool, bool, bool], Node] = {}
        for tensor in results:
            if id(tensor) in taken:  # `contiguous()` and the like may return the tensor itself
                continue
            requires_grad = tensor.requires_grad
            kind = (requires_grad, _is_floating(tensor), requires_grad and is_leaf(tensor))
            node = made.get(kind)
            if node is None:
                node = made[kind] = self.window.add(_result_node(operation, kind, inputs, spot, switch))
            self.window.bind(tensor, node)
        return list(made.values())

    def _write(
        self,
        operation: Operation,
        target: torch.Tensor,
        inputs: _Inputs,
        spot: Spot,
        switch: Switch | None,
        overwrites: bool,
    ) -> Node | None:
        old = next((n for t, n in zip(inputs.tensors, inputs.nodes, strict=True) if t is target), None)
        sources = [(t, n) for t, n in zip(inputs.tensors, inputs.nodes, strict=True) if t is not target and n]
        requires_grad = target.requires_grad
        held = requires_grad and is_leaf(target)
        if not (sources or inputs.exact or inputs.guessed) and (held or old is None):
            return None  # initialisation, or an update by numbers
        live = [old] if old is not None and old.requires_grad and not overwrites else []
        if switch is None and operation.effect is not Effect.SET_DATA:
            live += [n for t, n in sources if t.requires_grad]
        kept = [old] if old is not None and not overwrites else []
        node = Node(
            operation,
            spot,
            parents=tuple(dict.fromkeys([*kept, *(n for _, n in sources), *inputs.exact])),
            live=tuple(dict.fromkeys(live)) if requires_grad else (),
            requires_grad=requires_grad,
            floating=_is_floating(target),
            switch=switch,
            replaced=old if overwrites else None,
            guessed=tuple(inputs.guessed),
            held_by_leaf=held,
        )
        self._bind(target, node)
        self.window.write(target, node)
        return node

    def _exit(self, operation: Operation, args: tuple[Any, ...], result: Any) -> None:
        parents = tuple(node for node in self._inputs(args, {}).nodes if node is not None)
        if not parents:
            return
        node = self.window.add(Node(operation, self._spots.here(callers=True), parents))
        if operation.effect is Effect.VALUE:
            self.window.exits.append(node)
            self.window.values.add(result, node)

    # -- attributes -------------------------------------------------------------------------------------------------

    def _set_grad(self, args: tuple[Any, ...]) -> None:
        if (len(args) < 2 or args[1] is None) and self.window.passes:
            self.window.cleared.put(args[0], Pass((), self._spots.here(), "", None, returns=False))

    def _set_requires_grad(self, tensor: torch.Tensor) -> None:
        known = self.node_of(tensor)
        if not tensor.requires_grad:
            self.frozen.put(tensor, self._spots.here())
            if known is not None and known.requires_grad:
                self._bind(tensor, Node(FREEZE, self._spots.here(), (known,)))
        elif known is not None and not known.requires_grad and is_leaf(tensor):
            spot = self._spots.here()
            self._bind(tensor, Node(FRESH_LEAF, spot, (known,), (), True, held_by_leaf=True))

    def _count_uses(self, inputs: _Inputs, spot: Spot, result: Any) -> None:
        leaves = [tensor for tensor in inputs.tensors if tensor.requires_grad and is_leaf(tensor)]
        if not leaves:
            return
        in_module = self._in_module()
        if not in_module and not any(t.requires_grad and not is_leaf(t) for t in tensors_in(result)):
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
        self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any, switch: Switch, grad: bool
    ) -> list[torch.Tensor]:
        """Record a call of an autograd.Function; `switch` is what was on during its forward.

        Returns:
            One output that requires grad, if there is any.
        """
        inputs = self._inputs(args, kwargs)
        outputs = tensors_in(result)
        inner = [node for tensor in outputs if (node := self.window.tensors.get(tensor)) is not None]
        if not (inputs.depend or inner):
            self.window.note_seen(outputs)
            return []
        off = None if grad else self._switches.off or UNSEEN
        inputs.nodes += inner
        inputs.tensors += [_NO_GRAD] * len(inner)
        operation = Operation(name, Effect.CUSTOM)
        self._results(operation, [t for t in outputs], inputs, switch.spot, off)
        return [t for t in outputs if t.requires_grad][:1]
