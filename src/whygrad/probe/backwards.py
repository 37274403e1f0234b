"""Which backward passes have run, and which tensors they brought a gradient.

torch keeps no record of either: a leaf whose `.grad` is None looks the same before backward, after a backward that did
not reach it, and after `zero_grad()`. While this record is installed, one patch of `torch.autograd.backward` counts the
passes and looks over the graph of each. It reads and never writes: the numbers stay the same to the last bit.

The record holds no reference to a tensor, not even a weak one: `torch.utils.swap_tensors`, and with it `module.to()`
on some models, refuses a tensor that is weakly referenced. It knows a tensor by its address, and holds a weak reference
to the tensor's storage, which tells an address that was used again from the tensor that was there before.
"""

from __future__ import annotations

import time
from array import array
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch.autograd.graph import GradientEdge
from torch.multiprocessing.reductions import StorageWeakRef

from whygrad.probe.age import Moment
from whygrad.probe.graph import MAX_NODES
from whygrad.probe.guard import Guard
from whygrad.probe.patches import Patches

ALWAYS_WALKED = 16  # the first passes are looked over whatever it takes; most questions are asked about few
WALK_SHARE = 0.02  # of the time since installation that may be spent on the passes after those
RECENT = 4  # passes whose nodes are remembered, as 8 bytes each: enough for losses that take turns

_weakly: Any = StorageWeakRef  # torch leaves it untyped
_clock = time.perf_counter  # bound here: programs mock `time`


@dataclass(frozen=True, slots=True)
class Past:
    """What the recorded backward passes tell about one tensor. None stands for what cannot be told."""

    passes: int  # backward passes counted since the record was installed
    walked: int  # of those: the graph was looked over
    ran: bool | None  # one of them ran after the tensor was made
    reached: bool | None  # one of them went through the tensor
    arrived: bool  # one of them left a gradient in its `.grad`; known of leaves only


@dataclass(slots=True)
class _Entry:
    storage: Any  # a weak reference to it
    since: int  # passes counted when the leaf was first seen
    fresh: bool = False  # it is known to be younger than the last of those
    reached: bool = False
    arrived: bool = False


class BackwardRecord:
    """The record of one process. It starts empty when it is installed, and is dropped with its last holder."""

    def __init__(self) -> None:
        self._holders = 0
        self._patches = Patches()
        self._clear()

    def _clear(self) -> None:
        self._guard = Guard()
        self._began_s = _clock()
        self._passes = 0
        self._walked = 0
        self._last: Moment | None = None
        self._last_sequence = 0  # torch numbers the nodes of each thread's graphs in the order they are made
        self._recent: deque[array[int] | None] = deque(maxlen=RECENT)  # None: that pass was not looked over
        self._entries: dict[int, _Entry] = {}  # address of a leaf -> what is known about it
        self._room = 1024

    def install(self) -> None:
        """Begin to record, or hold on to the record that is being made."""
        self._holders += 1
        if self._holders == 1:
            self._clear()
            after = self._guard.wrap("backward passes", self._after)
            self._patches.observe(torch.autograd, "backward", after=after)

    def remove(self) -> None:
        """Let go of the record; the last holder takes the patch out.

        Raises:
            RuntimeError: The record is not installed.
        """
        if self._holders == 0:
            msg = "the record of backward passes is not installed"
            raise RuntimeError(msg)
        self._holders -= 1
        if self._holders == 0:
            self._patches.undo()
            self._clear()

    def past(self, tensor: torch.Tensor) -> Past:
        """Return what the passes so far tell about a leaf or intermediate, and remember that a leaf exists."""
        if tensor.grad_fn is None:
            return self._past_of_leaf(tensor)
        number = tensor.grad_fn._sequence_nr()
        ran = self._passes > 0 and number < self._last_sequence
        reached: bool | None = ran and any(number in nodes for nodes in self._recent if nodes is not None)
        if ran and not reached and None in self._recent:
            reached = None
        return Past(self._passes, self._walked, ran, reached, arrived=False)

    def _past_of_leaf(self, leaf: torch.Tensor) -> Past:
        younger = True if self._last is None else self._last.is_before(leaf)
        entry = self._known(leaf)
        still_fresh = entry is not None and entry.fresh and entry.since == self._passes
        if entry is None or (younger and not still_fresh):  # else the entry is of a tensor that was there before
            entry = self._remember(leaf, fresh=younger is True)
        if younger or still_fresh:
            return Past(self._passes, self._walked, ran=False, reached=False, arrived=False)
        if entry is None:
            return Past(self._passes, self._walked, True if younger is False else None, reached=None, arrived=False)
        ran = True if younger is False or entry.reached or entry.since < self._passes else None
        return Past(self._passes, self._walked, ran, entry.reached, entry.arrived)

    def _after(self, args: tuple[Any, ...], kwargs: dict[str, Any], _result: object) -> None:
        if not self._holders:  # somebody's patch on top of ours outlived the record
            return
        nested = torch._C._current_graph_task_id() != -1  # reentrant checkpointing calls backward within backward
        if not nested:
            self._passes += 1
            self._last = Moment()
            self._last_sequence = torch._C._autograd._get_sequence_nr()
        graph = _walk(_roots(args, kwargs)) if self._may_walk() else None
        if not nested:
            self._recent.append(None if graph is None else graph.numbers)
            self._walked += graph is not None
        if graph is not None:
            for leaf in graph.leaves:
                self._note_reached(leaf)

    def _may_walk(self) -> bool:
        within_budget = self._guard.own_s <= WALK_SHARE * (_clock() - self._began_s)
        return within_budget or self._passes <= ALWAYS_WALKED

    def _note_reached(self, leaf: torch.Tensor) -> None:
        entry = self._known(leaf) or self._remember(leaf)
        if entry is None:
            return
        entry.reached = True
        # A hook that runs after accumulation (an optimizer step within backward) clears `.grad` before it is seen here.
        entry.arrived |= leaf.grad is not None or bool(leaf._post_accumulate_grad_hooks)

    def _known(self, leaf: torch.Tensor) -> _Entry | None:
        storage = _storage(leaf)
        entry = self._entries.get(leaf._cdata)
        if storage is None or entry is None or entry.storage.cdata != storage._cdata:
            return None
        return entry

    def _remember(self, leaf: torch.Tensor, *, fresh: bool = False) -> _Entry | None:
        storage = _storage(leaf)
        if storage is None:
            return None
        self._make_room()
        entry = self._entries[leaf._cdata] = _Entry(_weakly(storage), self._passes, fresh)
        return entry

    def _make_room(self) -> None:
        if len(self._entries) < self._room:
            return
        self._entries = {key: entry for key, entry in self._entries.items() if not entry.storage.expired()}
        self._room = max(1024, 2 * len(self._entries))


@dataclass(frozen=True, slots=True)
class _Graph:
    leaves: list[torch.Tensor]
    numbers: array[int]  # sequence numbers of the nodes that made intermediates


def _walk(roots: Iterable[Any]) -> _Graph | None:
    """Return what gradients of `roots`, tensors or gradient edges, flow through; None if there is too much of it."""
    graph = _Graph([root for root in roots if isinstance(root, torch.Tensor) and root.grad_fn is None], array("Q"))
    todo: list[Any] = [root.node if isinstance(root, GradientEdge) else root.grad_fn for root in roots]
    seen: set[Any] = {None}
    while todo:
        node = todo.pop()
        if node in seen:
            continue
        seen.add(node)
        if len(seen) > MAX_NODES:
            return None
        if type(node).__name__ == "AccumulateGrad":
            graph.leaves.append(node.variable)
        else:
            graph.numbers.append(node._sequence_nr())
            todo.extend(parent for parent, _ in node.next_functions)
    return graph


def _roots(args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
    """Return what backward was called on as a list. An iterator was used up by the call: nothing is left of it."""
    given = args[0] if args else kwargs["tensors"]
    if isinstance(given, (torch.Tensor, GradientEdge)):
        return [given]
    return list(given) if isinstance(given, (list, tuple)) else []


def _storage(leaf: torch.Tensor) -> torch.UntypedStorage | None:
    """Return the storage of a leaf, or None for one without: a sparse or a wrapped tensor."""
    try:
        return leaf.untyped_storage()
    except (RuntimeError, NotImplementedError):
        return None


BACKWARDS = BackwardRecord()
