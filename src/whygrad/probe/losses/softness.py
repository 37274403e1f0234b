"""Along which dimension the result of a softmax is summed, picked or compared, call by call."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import torch

from whygrad.probe.dataflow.arguments import Call
from whygrad.probe.losses.measures import spread_dimensions
from whygrad.probe.losses.names import BINARY, ELEMENTWISE, LOSSES, PRODUCTS
from whygrad.probe.losses.shapes import moved
from whygrad.probe.losses.values import Soft, SoftmaxLook, Value, source

_POOLS = ("sum", "mean")
LEFT, RIGHT = "product", "product, right"
TARGET = "target"
RENORMALISED = "renormalised"


def softmax_look(value: Value, call: Call, given: Value) -> SoftmaxLook | None:
    """Return the look at a call of softmax; None where its dimension is not known."""
    dim = call.kwargs.get("dim", call.args[1] if len(call.args) > 1 else None)
    rank = len(value.shape)
    if dim is None and "dim" in call.kwargs:
        dim = 0 if rank in (0, 1, 3) else 1  # what torch takes, with a warning
    if not isinstance(dim, int) or not rank:
        return None
    return SoftmaxLook(dim % rank, _is_product(given))


def follow(value: Value, call: Call, tensors: Sequence[torch.Tensor]) -> None:
    """Pass on that a value holds the result of a softmax, and note which of its dimensions is used up."""
    for index, parent in enumerate(value.parents):
        soft = parent.soft
        if soft is None:
            continue
        for dim, how in _used_up(value, call, tensors, index):
            rank = len(parent.shape)
            axis = soft.axes[dim % rank] if -rank <= dim < rank else None
            if axis is not None:
                soft.look.uses.append((axis, how, value.site))
        if value.soft is None:
            value.soft = _passed_on(value, call, parent, soft)


def _passed_on(value: Value, call: Call, parent: Value, soft: Soft) -> Soft | None:
    summed = _own_sum(value, soft)
    if summed is not None:
        soft.look.uses.extend((axis, RENORMALISED, value.site) for axis in _summed_axes(summed, soft))
        return None
    axes = moved(value.operation, call, soft.axes, parent.shape, value.shape)
    if axes is None:
        return None
    others = [other for other in value.parents if other is not parent and math.prod(other.shape) > 1]
    pools = bool(others) and value.operation in BINARY
    return replace(soft, axes=axes, weighted=soft.weighted or pools)


def _own_sum(value: Value, soft: Soft) -> Value | None:
    """Return the sum of a softmax's result that it is divided by, if it is."""
    if "div" not in value.operation or len(value.parents) < 2:
        return None
    divisor = source(value.parents[1])
    while divisor.operation in ELEMENTWISE and divisor.parents:
        divisor = source(divisor.parents[0])
    summed = divisor.parents[0].soft if divisor.operation == "sum" and divisor.parents else None
    return divisor if summed is not None and summed.look is soft.look else None


def _summed_axes(summed: Value, soft: Soft) -> list[int]:
    before = summed.parents[0].shape
    if len(before) != len(summed.shape) or len(before) != len(soft.axes):
        return []
    changed = [axis for axis, old, new in zip(soft.axes, before, summed.shape, strict=True) if old != new]
    return [axis for axis in changed if axis is not None]


def _used_up(value: Value, call: Call, tensors: Sequence[torch.Tensor], index: int) -> Iterator[tuple[int, str]]:
    """Yield the dimensions of an operand that an operation sums over or picks from, and how."""
    name, parent = value.operation, value.parents[index]
    if name in _POOLS and parent.soft is not None and parent.soft.weighted:
        yield from ((dim, "sum") for dim in _dimensions(call))
    elif name == "gather" and index == 0:
        yield from ((dim, name) for dim in _dimensions(call))
    elif name == "getitem" and index == 0:
        yield from ((dim, name) for dim in _picked(call, len(parent.shape)))
    elif name == "nll_loss" and index == 0:
        yield 1 if len(parent.shape) > 1 else 0, name
    elif name == "einsum":
        yield from ((dim, LEFT if index == 0 else RIGHT) for dim in _contracted(call, index))
    elif name in PRODUCTS and index < 2:
        yield from _of_product(parent, index)
    elif (name in LOSSES or name == "mul") and len(tensors) > 1:
        other = tensors[1 - index] if index < 2 else None
        if other is not None and not other.requires_grad and other.shape == tensors[index].shape:
            yield from ((dim, TARGET) for dim in spread_dimensions(other))


def _picked(call: Call, rank: int) -> list[int]:
    """Return the dimension of classes in `log_p[range(n), labels]`: the one that is not counted through."""
    index = call.args[1] if len(call.args) > 1 else None
    if not isinstance(index, tuple) or len(index) != rank or not all(_is_list(each) for each in index):
        return []
    free = [dim for dim, each in enumerate(index) if not _counts(each)]
    return free if len(free) == 1 else []


def _is_list(index: Any) -> bool:
    if isinstance(index, torch.Tensor):
        return index.dim() == 1 and not index.is_floating_point() and index.dtype is not torch.bool
    return isinstance(index, list | range)


def _counts(index: Any) -> bool:
    values = index.tolist() if isinstance(index, torch.Tensor) and index.device.type == "cpu" else index
    return isinstance(values, list | range) and list(values) == list(range(len(values)))


def _of_product(parent: Value, index: int) -> Iterator[tuple[int, str]]:
    if index == 0:
        yield -1, LEFT
    else:
        yield (-2 if len(parent.shape) > 1 else -1), RIGHT


def _contracted(call: Call, index: int) -> list[int]:
    """Return the dimensions of an operand of einsum that are summed over."""
    equation = call.args[0] if call.args and isinstance(call.args[0], str) else ""
    left, arrow, right = equation.replace(" ", "").partition("->")
    terms = left.split(",")
    if not arrow or "." in equation or index >= len(terms):
        return []
    return [dim for dim, letter in enumerate(terms[index]) if letter not in right]


def _dimensions(call: Call) -> tuple[int, ...]:
    dim = call.kwargs.get("dim", call.kwargs.get("axis", call.args[1] if len(call.args) > 1 else None))
    if isinstance(dim, bool) or dim is None:
        return ()
    return (dim,) if isinstance(dim, int) else tuple(each for each in dim if isinstance(each, int))


def _is_product(value: Value) -> bool:
    """Return whether a value is a matrix product, scaled or masked."""
    found = source(value)
    while found.operation in ELEMENTWISE and found.parents:
        found = source(found.parents[0])
    return found.operation in PRODUCTS
