"""What torch operations made and wrote in traced steps, and the last backward passes: the records of a post-mortem.

Autograd numbers the nodes of its graph in the order they are made. A call of a torch function that moved the counter
made the nodes in between, so a node of a broken graph leads back to the line that made it, though every tensor of that
line is gone. The journal keeps numbers only, and no tensor, node or storage alive.
"""

from __future__ import annotations

import functools
from array import array
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from threading import get_ident
from typing import Any, NamedTuple

import torch

from whygrad.probe.saved import saved_by
from whygrad.probe.source import Site

MAX_ROWS = 200_000  # results of calls that made nodes, 24 bytes each
MAX_WRITES = 20_000
MAX_UNTRACKED = 20_000  # tensors made in inference mode
PASSES = 16  # a kept graph is met again within a few passes
MAX_PASS_NODES = 50_000
_TELLING = 64  # nodes that are asked whether they were freed; many saved nothing

_counter: Callable[[], int] = torch._C._autograd._get_sequence_nr
_Tensor = torch.Tensor


class Call(NamedTuple):
    """A torch function, called from a line of the user's."""

    operation: str
    site: Site | None


class Write(NamedTuple):
    """An in-place write into a storage."""

    storage: int
    version: int  # of the tensor, after the write
    counter: int  # of nodes, after the write
    maker: int  # index of the call


@dataclass(frozen=True, slots=True)
class Pass:
    """A backward pass, or a call of autograd.grad, that used its graph up."""

    site: Site | None
    counter: int  # of nodes: those with a lower number existed when it ended
    steps: int  # optimizer steps before it
    nodes: frozenset[int] | None  # numbers of the nodes it went through; None: they were not looked at

    def covers(self, number: int) -> bool:
        """Return whether the pass went through a node; where its nodes are not known, whether it could have."""
        return number < self.counter if self.nodes is None else number in self.nodes


class Journal:
    """The records of one session."""

    def __init__(self) -> None:
        self.passes: deque[Pass] = deque(maxlen=PASSES)
        self._thread = get_ident()  # autograd counts nodes for each thread by itself
        self._last = 0
        self._numbers = array("Q")  # autograd's counter after a call that made nodes, one row for each result of it
        self._storages = array("Q")  # of that result
        self._makers = array("Q")  # index of the call
        self._calls: list[Call] = []
        self._indices: dict[tuple[str, int, int], int] = {}
        self._writes: deque[Write] = deque(maxlen=MAX_WRITES)
        self._unseen = self._index("", None)  # stands for what was not observed
        self._untracked: deque[tuple[int, int]] = deque(maxlen=MAX_UNTRACKED)

    def resume(self) -> None:
        """Begin to observe: the nodes made since the last observed call belong to no call."""
        if get_ident() != self._thread:
            return
        self._last = _counter()
        if not self._numbers or self._numbers[-1] < self._last:
            self._append(self._last, 0, self._unseen)

    def observe(
        self,
        function: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        result: object,
        here: Callable[[], Site | None],
    ) -> None:
        """Note a call of a torch function that has returned; `here` tells the user's line, if it is asked."""
        if get_ident() != self._thread:
            return
        number = _counter()
        made, self._last = number != self._last, number
        name: str = getattr(function, "__name__", "")
        targets = _written(name, args, kwargs) if kwargs or _writes(name) else ()
        untracked = torch.is_inference_mode_enabled()
        if not (made or targets or untracked):
            return
        maker = self._index(_operation(function, name), here())
        if made:
            self._note_results(number, result, maker)
        if untracked:
            self._untracked.extend((storage_key(tensor), maker) for tensor in _tensors(result))
        for tensor in targets:
            if not tensor.is_inference():
                self._writes.append(Write(storage_key(tensor), tensor._version, number, maker))

    def note_pass(self, roots: Sequence[Any], site: Site | None, steps: int, *, walk: bool) -> None:
        """Note a backward pass that has ended well.

        Args:
            roots: The tensors it started from; a pass that keeps their graph is not noted.
            site: The user's line.
            steps: Optimizer steps so far.
            walk: Calls are being observed: look at the nodes it went through as well, about a microsecond each.
        """
        if get_ident() != self._thread:
            return
        number = _counter()
        if walk and number != self._last:  # it was asked to make nodes for derivatives
            self._append(number, 0, self._index("backward", site))
            self._last = number
        nodes = _nodes_of(roots) if walk else []
        if walk and _is_kept(nodes):
            return
        numbers = frozenset(node._sequence_nr() for node in nodes) if nodes else None
        self.passes.append(Pass(site, number, steps, numbers))

    def made(self, number: int) -> Call | None:
        """Return the call that made a node, by the node's number; None if it was not observed."""
        rows = self._rows(number)
        maker = self._makers[rows.start] if rows else self._unseen
        return None if maker == self._unseen else self._calls[maker]

    def storages(self, number: int) -> tuple[int, ...]:
        """Return the storages of what the call that made a node returned."""
        return tuple(self._storages[row] for row in self._rows(number))

    def made_untracked(self, tensor: torch.Tensor) -> Call | None:
        """Return the call that made a tensor in inference mode."""
        key = storage_key(tensor)
        return next((self._calls[maker] for storage, maker in reversed(self._untracked) if storage == key), None)

    def written(self, storage: int, version: int, since: int = 0) -> Call | None:
        """Return the call whose write gave a tensor on a storage a version; the last one, should there be several.

        Args:
            storage: Its address, which was another storage's before.
            version: The tensor's version right after the write.
            since: Number of the node that made the tensor: what was written earlier was written to another one.
        """
        for write in reversed(self._writes):
            if write.counter <= since:
                break
            if write.storage == storage and write.version == version:
                return self._calls[write.maker]
        return None

    def _rows(self, number: int) -> range:
        first = bisect_right(self._numbers, number)
        if first == len(self._numbers):
            return range(0)
        return range(first, bisect_right(self._numbers, self._numbers[first]))

    def _note_results(self, number: int, result: object, maker: int) -> None:
        if type(result) is _Tensor:  # nearly always
            self._append(number, storage_key(result), maker)
            return
        for storage in [storage_key(tensor) for tensor in _tensors(result)] or [0]:
            self._append(number, storage, maker)

    def _append(self, number: int, storage: int, maker: int) -> None:
        if len(self._numbers) >= MAX_ROWS:
            for column in (self._numbers, self._storages, self._makers):
                del column[: MAX_ROWS // 2]
            self._makers[0] = self._unseen  # it would stand for all nodes before
        self._numbers.append(number)
        self._storages.append(storage)
        self._makers.append(maker)

    def _index(self, operation: str, site: Site | None) -> int:
        # by id: hashing a code object costs a microsecond; the call holds the code, so the id stays its own
        key = (operation, id(site.code), site.lasti) if site is not None else (operation, 0, 0)
        index = self._indices.get(key)
        if index is None:
            index = self._indices[key] = len(self._calls)
            self._calls.append(Call(operation, site))
        return index


def storage_key(tensor: torch.Tensor) -> int:
    """Return the address of a tensor's storage; 0 for a tensor without, such as a sparse one."""
    try:
        return int(tensor.untyped_storage()._cdata)
    except (RuntimeError, NotImplementedError):
        return 0


def _operation(function: Callable[..., Any], name: str) -> str:
    """Return what the user calls a function: the attribute's name for a property, no underscores around operators."""
    if name in ("__get__", "__set__"):
        return str(getattr(getattr(function, "__self__", None), "__name__", name))
    return name.strip("_") if name.startswith("__") else name


@functools.lru_cache(maxsize=4096)
def _writes(name: str) -> bool:
    """Return whether a function writes its first argument; in-place operators reach torch as `add_`."""
    return (name.endswith("_") and not name.endswith("__") and name != "requires_grad_") or name == "__setitem__"


def _written(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[torch.Tensor]:
    """Return the tensors that a call wrote into."""
    if "out" in kwargs:
        return list(_tensors(kwargs["out"]))
    if not (_writes(name) or kwargs.get("inplace")):
        return []
    return list(_tensors(args[0] if args else next(iter(kwargs.values()))))  # nn.init hands its tensor over by name


def _tensors(value: object) -> Iterator[torch.Tensor]:
    if isinstance(value, _Tensor):
        yield value
    elif isinstance(value, tuple | list):
        for item in value:
            yield from _tensors(item)


def _nodes_of(roots: Sequence[Any]) -> list[Any]:
    """Return the nodes that lead from `roots` to the leaves, the nearest first; none if there are too many."""
    found: dict[Any, None] = dict.fromkeys(getattr(root, "grad_fn", None) for root in roots)
    found.pop(None, None)
    todo = deque(found)
    while todo:
        for parent, _ in todo.popleft().next_functions:
            if parent is not None and parent not in found and type(parent).__name__ != "AccumulateGrad":
                found[parent] = None
                todo.append(parent)
        if len(found) > MAX_PASS_NODES:
            return []
    return list(found)


def _is_kept(nodes: Sequence[Any]) -> bool:
    """Return whether a pass left the graph as it was, for `retain_graph` or `create_graph`: the first to tell tells."""
    for node in nodes[:_TELLING]:
        saved = list(saved_by(node))
        if any(each.tensor is not None for each in saved):
            return True
        if any(each.is_freed for each in saved):
            return False
    return False
