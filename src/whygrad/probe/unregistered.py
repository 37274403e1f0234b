"""Parameters and modules that a module keeps where `named_parameters()` does not look: lists, dicts, attributes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import nn

from whygrad.probe.modules import NamedModule, own_parameters, walk
from whygrad.probe.source import UserCode

_DEPTH = 4  # containers in containers
_ITEMS = 4096  # a list of a million floats is data, not layers
_TORCH_OWN = frozenset(nn.Module().__dict__)  # attributes every module has


class Unregistered(NamedTuple):
    """A leaf tensor that a module holds without registering it."""

    tensor: torch.Tensor
    name: str  # qualified, as if it were registered
    attribute: str  # of the module that holds it
    owner: NamedModule
    held_in: str  # "list", "dict", "attribute" or "buffer"
    holder: nn.Module | None  # the unregistered module it is a parameter of


def find_unregistered(holder: NamedModule, user: UserCode) -> Iterator[Unregistered]:
    """Yield the leaf tensors that require grad and hang, unregistered, on one module."""
    prefix = f"{holder.name}." if holder.name else ""
    for attribute, buffer in list(holder.module._buffers.items()):
        if buffer is not None and buffer.requires_grad and buffer.is_leaf:
            yield Unregistered(buffer, prefix + attribute, attribute, holder, "buffer", None)
    for attribute, value in list(holder.module.__dict__.items()):
        if attribute in _TORCH_OWN:
            continue
        kind = "dict" if isinstance(value, dict) else "list" if isinstance(value, list | tuple | set) else "attribute"
        for path, tensor, owner in _tensors_in(value, attribute, user, _DEPTH, {id(holder.module)}):
            yield Unregistered(tensor, prefix + path, attribute, holder, kind, owner)


def _tensors_in(
    value: object, path: str, user: UserCode, depth: int, seen: set[int]
) -> Iterator[tuple[str, torch.Tensor, nn.Module | None]]:
    if depth < 0 or id(value) in seen:
        return
    if isinstance(value, torch.Tensor):
        if value.requires_grad and value.is_leaf:
            yield path, value, None
        return
    seen.add(id(value))
    if isinstance(value, nn.Module):
        for inner in walk(value, ""):
            for name, parameter in own_parameters(inner.module).items():
                yield ".".join(filter(None, (path, inner.name, name))), parameter, inner.module
        return
    for key, item in _items(value, user):
        yield from _tensors_in(item, f"{path}.{key}", user, depth - 1, seen)


def _items(value: object, user: UserCode) -> Iterator[tuple[object, object]]:
    if isinstance(value, dict):
        yield from list(value.items())[:_ITEMS]
    elif isinstance(value, list | tuple):
        yield from enumerate(value[:_ITEMS])
    elif isinstance(value, set | frozenset):
        yield from enumerate(list(value)[:_ITEMS])
    elif _is_plain_user_object(value, user):
        yield from list(vars(value).items())[:_ITEMS]


def _is_plain_user_object(value: object, user: UserCode) -> bool:
    init = getattr(type(value), "__init__", None)
    code = getattr(init, "__code__", None)
    return code is not None and isinstance(getattr(value, "__dict__", None), dict) and user.owns(code)
