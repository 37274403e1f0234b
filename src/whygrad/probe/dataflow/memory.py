"""Tensors that share memory: a value written through one of them is seen through the others."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch
from torch.multiprocessing.reductions import StorageWeakRef

from whygrad.probe.dataflow.nodes import Node

_weakly: Any = StorageWeakRef  # torch leaves it untyped


class _Stretch(NamedTuple):
    """Elements of a storage, the last one excluded."""

    start: int
    end: int

    def meets(self, other: _Stretch) -> bool:
        return self.start < other.end and other.start < self.end

    def holds(self, other: _Stretch) -> bool:
        return self.start <= other.start and other.end <= self.end


@dataclass(slots=True)
class _Storage:
    reference: Any  # weak; while it exists, the storage's address is not given to another one
    latest: Node  # of any tensor on it
    offset: int  # of that tensor
    writes: list[tuple[_Stretch, Node]] = field(default_factory=list)


class Memory:
    """What the storages of a step hold."""

    def __init__(self) -> None:
        self._storages: dict[int, _Storage] = {}
        self._written = False

    def hold(self, tensor: torch.Tensor, node: Node) -> None:
        """Note a tensor's value."""
        key = _key(tensor)
        storage = self._storages.get(key)
        if storage is not None:
            storage.latest, storage.offset = node, int(tensor.storage_offset())
        elif key:
            self._storages[key] = _Storage(_weakly(tensor.untyped_storage()), node, int(tensor.storage_offset()))

    def write(self, tensor: torch.Tensor, node: Node) -> None:
        """Note a value that was written in place, and that `hold` was told of."""
        storage = self._storages.get(_key(tensor))
        if storage is not None:
            self._written = True
            written = _stretch(tensor)
            storage.writes = [(s, n) for s, n in storage.writes if not written.holds(s)]
            storage.writes.append((written, node))

    def same(self, tensor: torch.Tensor) -> Node | None:
        """Return the value of another tensor that is this one's by another name, if there is one."""
        storage = self._storages.get(_key(tensor)) if self._storages else None
        if storage is None or storage.offset != tensor.storage_offset() or storage.latest.size != tensor.numel():
            return None
        return storage.latest

    def writes(self, tensor: torch.Tensor, since: int) -> list[Node]:
        """Return what was written into a tensor's memory after the node with a number was made."""
        storage = self._storages.get(_key(tensor)) if self._written else None
        if storage is None or not storage.writes or storage.writes[-1][1].number <= since:
            return []
        own = _stretch(tensor)
        return [node for stretch, node in storage.writes if node.number > since and own.meets(stretch)]


def _stretch(tensor: torch.Tensor) -> _Stretch:
    start = int(tensor.storage_offset())
    try:
        steps = zip(tensor.shape, tensor.stride(), strict=True)
    except RuntimeError:  # nested tensors have neither
        return _Stretch(start, start + tensor.numel())
    return _Stretch(start, start + 1 + sum((size - 1) * stride for size, stride in steps) if tensor.numel() else start)


def _key(tensor: torch.Tensor) -> int:
    """Return the address of a tensor's storage; 0 for tensors without, such as sparse ones and wrappers."""
    try:
        return int(tensor.untyped_storage()._cdata)
    except (RuntimeError, NotImplementedError):
        return 0
