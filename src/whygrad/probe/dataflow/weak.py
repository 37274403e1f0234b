"""Notes on tensors that keep none of them alive."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from typing import Generic, TypeVar

import torch

_T = TypeVar("_T")


class TensorTable(Generic[_T]):
    """Values by tensor identity. An id is used again after its tensor has died, so each is verified when read."""

    __slots__ = ("_entries", "_room")

    def __init__(self) -> None:
        self._entries: dict[int, tuple[weakref.ref[torch.Tensor], _T]] = {}
        self._room = 1024

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, tensor: object) -> bool:
        entry = self._entries.get(id(tensor))
        return entry is not None and entry[0]() is tensor

    def get(self, tensor: torch.Tensor) -> _T | None:
        """Return what was noted about a tensor, or None."""
        entry = self._entries.get(id(tensor))
        return entry[1] if entry is not None and entry[0]() is tensor else None

    def put(self, tensor: torch.Tensor, value: _T) -> None:
        """Note something about a tensor."""
        self._entries[id(tensor)] = (weakref.ref(tensor), value)
        if len(self._entries) > self._room:
            self.forget_dead()

    def drop(self, tensor: torch.Tensor) -> None:
        """Forget a tensor, and the weak reference to it."""
        self._entries.pop(id(tensor), None)

    def alive(self) -> Iterator[tuple[torch.Tensor, _T]]:
        """Yield the tensors that still exist, with what was noted."""
        for reference, value in list(self._entries.values()):
            tensor = reference()
            if tensor is not None:
                yield tensor, value

    def forget_dead(self) -> None:
        """Drop the entries of tensors that are gone."""
        self._entries = {key: entry for key, entry in self._entries.items() if entry[0]() is not None}
        self._room = max(1024, 2 * len(self._entries))
