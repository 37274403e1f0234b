"""The tensors that frames hold, under the names of what holds them: variables, and attributes of the user's objects.

Everything is read as it lies there: no method, property or iterator of the program runs.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from types import FrameType, SimpleNamespace
from typing import Any

import torch
from torch import nn

from whygrad.probe.postmortem.statements import attributes, is_a
from whygrad.probe.source import UserCode, local_names

_DEPTH = 4  # attributes of items of attributes
_ITEMS = 20_000  # values looked at, in all
_SEQUENCES: tuple[Any, ...] = (list, tuple, deque)


@dataclass(frozen=True, slots=True)
class Held:
    """A tensor that the program still holds, and the name of what holds it."""

    tensor: torch.Tensor
    name: str


def held_by(user: UserCode, frames: Iterable[FrameType]) -> list[Held]:
    """Return the tensors that frames hold, attributes before variables; models are left out."""
    search = _Search(user)
    variables = [
        held for frame in frames for name, value in local_names(frame).items() for held in search.under(name, value)
    ]
    return [*search.attributes, *variables]


class _Search:
    """Goes through what variables hold; `attributes` collects what lies in attributes of the user's objects."""

    def __init__(self, user: UserCode) -> None:
        self.attributes: list[Held] = []
        self._user = user
        self._seen: set[int] = set()
        self._left = _ITEMS

    def under(self, name: str, value: object, depth: int = _DEPTH) -> Iterator[Held]:
        """Yield the tensors in a variable and in its containers, under the variable's name."""
        if is_a(value, torch.Tensor):
            yield Held(value, name)
            return
        if is_a(value, nn.Module) or depth == 0 or self._left <= 0 or id(value) in self._seen:
            return
        for item in _items(value):
            self._left -= 1
            yield from self.under(name, item, depth - 1)
        if self._is_users(value):
            self._seen.add(id(value))
            for attribute, item in attributes(value).items():
                self.attributes += self.under(attribute, item, depth - 1)

    def _is_users(self, value: object) -> bool:
        members = (member for each in type(value).__mro__ for member in vars(each).values())
        codes = (getattr(member, "__code__", None) for member in members)
        return type(value) is SimpleNamespace or any(code is not None and self._user.owns(code) for code in codes)


def _items(value: object) -> list[Any]:
    """Return what a container holds, read with the methods of Python's own containers."""
    if is_a(value, dict):
        return list(dict.values(value))[-_ITEMS:]
    for kind in _SEQUENCES:
        if is_a(value, kind):
            return list(kind.__iter__(value))[-_ITEMS:]
    return []


def tensors_of(value: object) -> list[torch.Tensor]:
    """Return a value that is a tensor, or the tensors in a container."""
    return [item for item in (value, *_items(value)) if is_a(item, torch.Tensor)]
