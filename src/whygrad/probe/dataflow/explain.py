"""Why a tensor has no gradient, from what one step left behind."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import torch

from whygrad.model import PathEnd as PathKind
from whygrad.probe.dataflow.cuts import describe
from whygrad.probe.dataflow.flow import Flow, Links, Stop, ancestors, carries, connects, successors
from whygrad.probe.dataflow.links import text_links
from whygrad.probe.dataflow.nodes import Node, Pass
from whygrad.probe.dataflow.operations import Effect, Operation
from whygrad.probe.dataflow.passes import delivers
from whygrad.probe.dataflow.result import Cut, PathEnd
from whygrad.probe.dataflow.slices import steers
from whygrad.probe.dataflow.spots import NOWHERE, Spot
from whygrad.probe.dataflow.targets import is_target
from whygrad.probe.dataflow.terms import lost_terms
from whygrad.probe.dataflow.window import Window, is_leaf

_MAX_CUTS = 32
_MAX_ROUND_TRIPS = 4  # a value may leave torch and come back several times
_LOOKED_AT = (Effect.VALUE, Effect.LOOK)
_UPKEEP = (*_LOOKED_AT, Effect.DETACH, Effect.DATA, Effect.COPY)  # what saving, copying and logging do to parameters


class Explanation:
    """Answers for the tensors of one step; searches that they share are made once."""

    def __init__(self, window: Window) -> None:
        self._window = window
        filling = [p for p in window.passes if not p.returns]
        self._fills = bool(filling)
        self._roots = list(dict.fromkeys(root for p in filling or window.passes for root in p.roots))
        self._flow = Flow(self._roots)
        self._carried: dict[Node, int] | None = None
        self._users: dict[Node, list[Node]] | None = None

    def of(self, tensor: torch.Tensor, frozen: Spot | None) -> PathEnd:
        """Return where the path of a tensor ends; `frozen` is the line that switched its gradient off, if known."""
        window = self._window
        if not tensor.requires_grad:
            return _end(PathKind.FROZEN, frozen or NOWHERE)
        if not is_leaf(tensor):
            made = window.tensors.get(tensor)
            return _end(PathKind.NON_LEAF, made.spot, made.operation) if made else PathEnd(PathKind.NON_LEAF)
        if not window.passes:
            return PathEnd(PathKind.NO_BACKWARD)
        passes = window.reached.get(tensor) or []
        of_loss = [p for p in passes if not p.returns or not self._fills or delivers(p, tensor)]
        if of_loss:
            return self._reached(tensor, of_loss)
        answer = self._unreached(tensor)
        aside = passes and answer.kind is not PathKind.CUT  # a gradient was taken on the way, of something else
        return _end(PathKind.RESTRICTED, passes[-1].spot, Operation(passes[-1].operation)) if aside else answer

    def lost_terms(self) -> list[tuple[Cut, list[torch.Tensor]]]:
        """Return the cuts of terms of the loss that give no gradient, with the parameters nearest to each."""
        links: Links = {n: n.guessed for n in self._window.guesses}
        found = text_links(self._window.exits, (), self._window.entries)
        terms = lost_terms(self._window, self._roots, {**links, **found})
        places: dict[object, tuple[Cut, dict[int, torch.Tensor]]] = {}
        for cut, tensors in terms:
            key = cut.mode_place or (cut.operation, cut.place)
            places.setdefault(key, (cut, {}))[1].update((id(tensor), tensor) for tensor in tensors)
        return [(cut, list(tensors.values())) for cut, tensors in places.values()]

    # -- autograd reaches it ----------------------------------------------------------------------------------------

    def _reached(self, tensor: torch.Tensor, passes: list[Pass]) -> PathEnd:
        gradient = tensor.grad
        if gradient is not None:
            return self._zero(tensor) if _is_zero(gradient) else PathEnd(PathKind.REACHED)
        delivered = [p for p in passes if delivers(p, tensor)]
        if not delivered:
            return _end(PathKind.RESTRICTED, passes[-1].spot, Operation(passes[-1].operation))
        cleared = self._window.cleared.get(tensor)
        if cleared is not None and cleared.number > delivered[-1].number:
            return _end(PathKind.CLEARED, cleared.spot)
        if all(p.returns for p in delivered):
            return PathEnd(PathKind.REACHED)
        return self._undefined(tensor)

    def _zero(self, tensor: torch.Tensor) -> PathEnd:
        """Name the operations with a derivative of zero, or that select, where all ways lead through such."""
        nodes = self._nodes_of(tensor)
        if self._carried is None:
            self._carried = ancestors(self._roots, lambda n: [p for p in n.live if carries(p, n)])
        if not any(node in self._carried for node in nodes):
            replaced = {n: (n.replaced,) for n in self._flow.reaching if n.replaced is not None}
            flow = Flow(self._roots, replaced)
            cuts = self._describe(flow.stops(nodes, carries), flow)
            return PathEnd(PathKind.CUT, cuts) if cuts else PathEnd(PathKind.REACHED)
        whole = ancestors(self._roots, lambda n: () if n.is_part else n.live)
        if any(node in whole for node in nodes):
            return PathEnd(PathKind.REACHED)
        selecting = self._flow.stops(nodes, lambda parent, n: connects(parent, n) and not n.is_part)
        first = next((stop.node for stop in selecting if stop.node.is_part), None)
        return _end(PathKind.REACHED, first.spot, first.operation) if first else PathEnd(PathKind.REACHED)

    def _undefined(self, tensor: torch.Tensor) -> PathEnd:
        """Name the autograd.Function that gave no gradient, or those that may have."""
        order: list[Node] = []
        seen = set(self._nodes_of(tensor))
        todo = list(seen)
        while todo:  # breadth first: the nearest comes first
            order += todo
            todo = [u for node in todo for u in self._flow.users(node) if connects(node, u) and u not in seen]
            todo = list(dict.fromkeys(todo))
            seen.update(todo)
        custom = [n for n in order if n.operation.effect is Effect.CUSTOM]
        guilty = next((n for n in custom if n.gave_nothing), custom[0] if custom else None)
        if guilty is None:
            return PathEnd(PathKind.UNDEFINED)
        end = _end(PathKind.UNDEFINED, guilty.spot, guilty.operation)
        if guilty.backward is None:  # a compiled function: what it holds is not seen
            return end
        cuts = self._describe([Stop(parent, guilty, 1) for parent in guilty.live[:1]], self._flow)
        return replace(end, cuts=cuts)

    # -- autograd does not reach it ---------------------------------------------------------------------------------

    def _unreached(self, tensor: torch.Tensor) -> PathEnd:
        nodes = self._nodes_of(tensor)
        if not nodes:
            return PathEnd(PathKind.UNKNOWN if self._window.too_large else PathKind.UNUSED)
        for flow in self._ever_wider(nodes):
            cuts = self._describe(flow.stops(nodes, connects), flow)
            if cuts:
                return PathEnd(PathKind.CUT, cuts)
        if self._window.too_large:
            return PathEnd(PathKind.UNKNOWN)
        users = [user for node in nodes for user in self._flow.users(node)]
        if users:  # an operation took it for a part of its results that the loss does not use
            first = min(users, key=lambda user: user.number)
            return _end(PathKind.IGNORED, first.spot, first.operation)
        return self._ignored(tensor, nodes)

    def _ever_wider(self, nodes: list[Node]) -> Iterable[Flow]:
        """Yield the flow along links that were seen, then with equal numbers, then with links from source text."""
        yield self._flow
        links: Links = {n: n.guessed for n in self._window.guesses}
        if links:
            yield Flow(self._roots, links)
        for _ in range(_MAX_ROUND_TRIPS):
            more = self._read_links(nodes, links)
            if more == links:
                return
            links = more
            yield Flow(self._roots, links)

    def _read_links(self, nodes: list[Node], links: Links) -> Links:
        users = successors(self._window.nodes, lambda n: n.parents + links.get(n, ()))
        reached = ancestors(nodes, lambda n: users.get(n, ()))
        left = [n for n in self._window.exits if n in reached]
        vanished = [n for n in reached if n not in users and n.operation.effect not in _LOOKED_AT]
        found = text_links(left, sorted(vanished, key=lambda n: n.number), self._window.entries)
        merged = dict(links)
        for entry, more in found.items():
            merged[entry] = tuple(dict.fromkeys((*links.get(entry, ()), *more)))
        return merged

    def _ignored(self, tensor: torch.Tensor, nodes: list[Node]) -> PathEnd:
        if self._users is None:
            self._users = successors(self._window.nodes, lambda n: n.parents)
        users = self._users
        reached = ancestors(nodes, lambda n: users.get(n, ()))
        ends = [n for n in reached if not users.get(n) and n not in nodes]
        computed = [n for n in ends if n.operation.effect not in _LOOKED_AT]
        steering = () if computed else [n for n in ends if n.spot.site is not None and steers(n.spot.site)]
        if steering:  # the loss depends on it by the way the program takes
            flow = Flow(steering)
            cuts = [replace(cut, inferred=True) for cut in self._describe(flow.stops(nodes, connects), flow)]
            return PathEnd(PathKind.CUT, tuple(cuts))
        last = max(computed or ends, key=lambda n: n.number, default=None)
        if last is None or not self._is_used(tensor, ends):
            return PathEnd(PathKind.UNUSED)
        return _end(PathKind.IGNORED, last.spot, last.operation)

    def _is_used(self, tensor: torch.Tensor, ends: list[Node]) -> bool:
        """Return whether a parameter took part in the model's work, rather than being logged, saved or copied."""
        use = self._window.leaves.get(tensor)
        if use is None or use.in_module or not isinstance(tensor, torch.nn.Parameter):
            return True
        return any(end.operation.effect not in _UPKEEP for end in ends)

    # -- shared -----------------------------------------------------------------------------------------------------

    def _nodes_of(self, tensor: torch.Tensor) -> list[Node]:
        use = self._window.leaves.get(tensor)
        return [] if use is None else use.nodes

    def _describe(self, stops: list[Stop], flow: Flow) -> tuple[Cut, ...]:
        certain = self._flow.reaching
        cuts: dict[object, Cut] = {}
        for stop in stops:
            cut = describe(stop, flow, certain)
            cut = replace(cut, as_target=is_target(stop, flow))
            cuts.setdefault((cut.kind, cut.operation, cut.place), cut)
            if len(cuts) >= _MAX_CUTS:
                break
        return tuple(cuts.values())


def _end(kind: PathKind, spot: Spot, operation: Operation | None = None) -> PathEnd:
    return PathEnd(kind, (), spot.place, operation.name if operation else "", spot.within)


def _is_zero(gradient: torch.Tensor) -> bool:
    """Return whether a gradient is all zeros. Nobody looks on an accelerator: it would have to be waited for."""
    if not gradient.is_cpu:
        return False
    values = gradient.coalesce().values() if gradient.is_sparse else gradient
    return not bool(values.detach().any())
