"""The tensors and other values in the arguments and results of a call."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch

from whygrad.probe.dataflow.values import is_numpy

_DEPTH = 3  # lists in lists
_ITEMS = 4096
_Tensor = torch.Tensor


class Call(NamedTuple):
    """A call of a torch function that has returned."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    result: Any


def gather(value: Any, tensors: list[torch.Tensor], others: list[Any] | None = None, depth: int = _DEPTH) -> None:
    """Append the tensors in a value, and the Python and numpy values that may have been tensors before."""
    kind = type(value)
    if kind is int or kind is float or kind is complex:
        if others is not None:
            others.append(value)
    elif isinstance(value, _Tensor):
        tensors.append(value)
    elif isinstance(value, tuple | list):
        if others is not None and kind is list and value and not isinstance(value[0], _Tensor):
            others.append(value)
        if depth:
            for item in value[:_ITEMS]:
                gather(item, tensors, others, depth - 1)
    elif isinstance(value, dict):
        if depth:
            for item in list(value.values())[:_ITEMS]:
                gather(item, tensors, others, depth - 1)
    elif kind is slice:
        gather((value.start, value.stop, value.step), tensors, others, 1)
    elif others is not None and is_numpy(value):
        others.append(value)


def tensors_in(value: Any) -> list[torch.Tensor]:
    """Return the tensors in what a call returned."""
    if isinstance(value, _Tensor):
        return [value]
    found: list[torch.Tensor] = []
    if isinstance(value, tuple | list | dict):
        gather(value, found)
    return found


def is_whole(index: Any) -> bool:
    """Return whether an index selects everything: `[:]`, `[...]`, `[:, :]`."""
    if isinstance(index, tuple):
        return all(is_whole(part) for part in index)
    return index is Ellipsis or (type(index) is slice and index == slice(None))


def one_by_one(call: Call) -> list[Call]:
    """Return the calls that a `torch._foreach_*` function stands for: one for each place in its lists."""
    args, kwargs, result = call
    count = len(args[0]) if args and isinstance(args[0], tuple | list) else 0

    def at(value: Any, index: int) -> Any:
        return value[index] if isinstance(value, tuple | list) and len(value) == count else value

    return [
        Call(tuple(at(a, i) for a in args), {key: at(v, i) for key, v in kwargs.items()}, at(result, i))
        for i in range(count)
    ]
