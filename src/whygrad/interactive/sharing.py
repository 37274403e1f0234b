"""Which live tensor shares a tensor's memory: the trace that `detach()` and `.data` leave."""

from __future__ import annotations

import functools
import gc
from typing import Any

import torch


def sharer_with_grad(tensor: torch.Tensor) -> torch.Tensor | None:
    """Return a tensor that requires grad and shares the memory of `tensor`, if the program still holds one."""
    memory = _memory_of(tensor)
    if memory is None or torch._C._storage_Use_Count(memory) <= _uses_if_alone():
        return None
    candidate: Any
    for candidate in gc.get_objects():
        # `isinstance` would ask the object, and some lie about their class.
        if not issubclass(type(candidate), torch.Tensor) or candidate is tensor:
            continue
        if candidate.requires_grad and _memory_of(candidate) == memory:
            sharer: torch.Tensor = candidate
            return sharer
    return None


def _memory_of(tensor: torch.Tensor) -> int | None:
    """Return the identity of a tensor's storage; None for one without: sparse, or wrapped by a transform."""
    try:
        identity: int = tensor.untyped_storage()._cdata
    except (RuntimeError, NotImplementedError):
        return None
    return identity


@functools.cache
def _uses_if_alone() -> int:
    """Return the use count of a storage that one tensor holds: torch's own bookkeeping differs by version."""
    alone = torch.ones(1, device="cpu")
    return torch._C._storage_Use_Count(alone.untyped_storage()._cdata)
