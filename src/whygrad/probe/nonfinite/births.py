"""The calls that made NaN or Inf out of finite numbers, and which of them a tensor has its own from.

Most are harmless: a mask is filled with -Inf, the logarithm of 0 is replaced a line later. Only what reaches a loss
counts, so each tensor that is not finite is followed, by its storage, to the call where that began.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import torch
from torch.multiprocessing.reductions import StorageWeakRef

from whygrad.probe.dataflow.arguments import gather
from whygrad.probe.nonfinite.finite import Finite, describe, is_readable
from whygrad.probe.source import Site

MAX_FOLLOWED = 4096  # tensors that are not finite
_DESCRIBED = 3  # inputs

_weakly: Any = StorageWeakRef  # torch leaves it untyped
# What turns rows that are masked as a whole into NaN: the mask is meant, the empty row is not.
_ROW_BY_ROW = ("softmax", "logsumexp", "attention", "cross_entropy")
_FROM_OUTSIDE = ("tensor", "as_tensor", "asarray", "from_numpy", "frombuffer", "load", "new_tensor", "scalar_tensor")


class Source(StrEnum):
    """Where a value that is not finite came from."""

    BORN = "born"  # a call made it out of finite numbers
    MEANT = "meant"  # Inf as the program wrote it: a mask
    ENTERED = "entered"  # NaN that came from outside: data
    INFINITE = "infinite"  # the same for Inf, which may be a mask
    PARAMETER = "parameter"  # a parameter was not finite any more


@dataclass(frozen=True, slots=True)
class Origin:
    """The call that NaN or Inf came from."""

    source: Source
    order: int
    operation: str
    site: Site | None
    is_nan: bool
    inputs: tuple[dict[str, float | int | str], ...] = ()


@dataclass(slots=True)
class Births:
    """What is not finite at the moment; one per session."""

    finite: Finite
    _origins: dict[int, tuple[Any, Origin]] = field(default_factory=dict)  # storage -> weak reference to it, origin
    _order: int = 0

    def call(
        self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any, here: Callable[[], Site | None]
    ) -> None:
        """Look at what a call returned, or wrote."""
        made = _tensors(args[0] if name == "__setitem__" else result)
        broken = [tensor for tensor in made if self.finite.is_broken(tensor)]
        if broken and "empty" not in name:
            origin = self._origin(name, (args, kwargs), broken, here)
            for tensor in broken:
                self._follow(tensor, origin)

    def of(self, tensor: torch.Tensor) -> Origin | None:
        """Return what a tensor that is not finite has this from; None if that was not seen."""
        storage = _storage(tensor)
        known = None if storage is None else self._origins.get(storage._cdata)
        if known is None or known[0].expired():
            return None
        return known[1]

    def clear(self) -> None:
        """Forget the storages that are gone; masks outlive their step."""
        self._origins = {key: known for key, known in self._origins.items() if not known[0].expired()}

    def _origin(
        self, name: str, given: tuple[Any, Any], broken: list[torch.Tensor], here: Callable[[], Site | None]
    ) -> Origin:
        inputs: list[torch.Tensor] = []
        others: list[Any] = []
        gather(given, inputs, others)
        has_nan = any(self.finite.has_nan(tensor) for tensor in broken)
        results = {id(tensor) for tensor in broken}  # in place: what it was before is not known
        before = [tensor for tensor in inputs if id(tensor) not in results or self.of(tensor) is not None]
        taken = [(tensor, self._entered(tensor, name, here)) for tensor in before if self.finite.is_broken(tensor)]
        written = [value for value in others if isinstance(value, float) and not math.isfinite(value)]
        if not taken:
            source = Source.BORN
            if any(math.isnan(value) for value in written):
                source = Source.ENTERED
            elif written and not has_nan:
                source = Source.MEANT
            elif name in _FROM_OUTSIDE or not inputs:
                source = Source.ENTERED if has_nan else Source.INFINITE
            return self._new(source, name, here(), is_nan=has_nan, inputs=before)
        first = min((origin for _, origin in taken), key=lambda origin: origin.order)
        if has_nan and self._is_new(name, taken):
            return self._new(Source.BORN, name, here(), is_nan=True, inputs=before)
        return first

    def _is_new(self, name: str, taken: list[tuple[torch.Tensor, Origin]]) -> bool:
        """Return whether NaN was made of an Inf that is meant."""
        masks = {Source.MEANT, Source.INFINITE} if any(part in name for part in _ROW_BY_ROW) else {Source.MEANT}
        return all(origin.source in masks and not self.finite.has_nan(tensor) for tensor, origin in taken)

    def _entered(self, tensor: torch.Tensor, name: str, here: Callable[[], Site | None]) -> Origin:
        """Return the origin of an input that is not finite."""
        known = self.of(tensor)
        if known is not None:
            return known
        is_nan = self.finite.has_nan(tensor)
        if tensor.is_leaf and tensor.requires_grad:
            source = Source.PARAMETER
        else:
            source = Source.ENTERED if is_nan else Source.INFINITE
        origin = self._new(source, name, here(), is_nan=is_nan, inputs=[tensor])
        self._follow(tensor, origin)
        return origin

    def _new(self, source: Source, name: str, site: Site | None, *, is_nan: bool, inputs: list[torch.Tensor]) -> Origin:
        self._order += 1
        seen = tuple(describe(t) for t in inputs[:_DESCRIBED] if t.layout is torch.strided and is_readable(t))
        return Origin(source, self._order, plain_name(name), site, is_nan, seen)

    def _follow(self, tensor: torch.Tensor, origin: Origin) -> None:
        storage = _storage(tensor)
        if storage is None:
            return
        if len(self._origins) >= MAX_FOLLOWED:
            self.clear()
        if len(self._origins) < MAX_FOLLOWED:
            self._origins[storage._cdata] = (_weakly(storage), origin)


def plain_name(name: str) -> str:
    """Return what the user calls a function: no underscores around operators."""
    return name.strip("_") if name.startswith("__") else name


def _tensors(value: Any) -> list[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        return [value]
    found: list[torch.Tensor] = []
    if isinstance(value, tuple | list | dict):
        gather(value, found)
    return found


def _storage(tensor: torch.Tensor) -> torch.UntypedStorage | None:
    try:
        return tensor.untyped_storage()
    except (RuntimeError, NotImplementedError):
        return None
