"""One call of a torch function to the facts about it that cannot be read later."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from whygrad.probe.dataflow.arguments import Call
from whygrad.probe.losses.measures import UNKNOWN, LossLook, class_dimension, is_all_zero, numbers_of
from whygrad.probe.losses.names import (
    BINARY,
    BINARY_LOSSES,
    DIFFERENCES,
    PAIR_LOSSES,
    REGRESSION_LOSSES,
    RESHAPES,
)
from whygrad.probe.losses.shapes import broadcast, is_outer, is_scrambled
from whygrad.probe.losses.values import Value, source
from whygrad.probe.source import Site, span

_BROADCASTING = REGRESSION_LOSSES | BINARY_LOSSES
_UNMEASURED = ("triplet_margin_loss",)
_TINY = 1e-3  # what is added to a probability to keep its logarithm finite
_COLUMN_MAKERS = frozenset(("unsqueeze", "getitem", "view", "reshape"))
_NORMALISING = ("cosine_similarity", "normalize", "layer_norm")


def loss_look(value: Value, call: Call, tensors: Sequence[torch.Tensor]) -> LossLook | None:
    """Return the look at a call of a loss function; None if it has no target."""
    name = value.operation
    position = 2 if name in PAIR_LOSSES else 1
    if name in _UNMEASURED or len(tensors) <= position:
        return None
    given, target = tensors[0], tensors[position]
    classes = class_dimension(name, given)
    target_classes = classes if target.shape == given.shape else None
    has_log_target = bool(call.kwargs.get("log_target"))
    return LossLook(
        function=name,
        reduction=str(call.kwargs.get("reduction", "")),
        input=value.parents[0],
        target=value.parents[position],
        result_shape=broadcast(tuple(given.shape), tuple(target.shape))
        if name in _BROADCASTING
        else tuple(given.shape),
        numbers=numbers_of(given, classes),
        target_numbers=UNKNOWN if has_log_target else numbers_of(target, target_classes),
        target_is_index=not target.is_floating_point(),
    )


def difference_look(value: Value, tensors: Sequence[torch.Tensor]) -> LossLook | None:
    """Return the look at a difference of a prediction, which requires grad, and a target, which does not."""
    if value.operation not in DIFFERENCES or len(tensors) != 2 or not value.learns:
        return None
    first, second = value.parents
    if first.learns == second.learns or not (first.shape and second.shape):
        return None
    given = 0 if first.learns else 1
    if not (tensors[0].is_floating_point() and tensors[1].is_floating_point()) or value.parents[given].leaf is not None:
        return None
    return LossLook(
        function=value.operation,
        reduction="",
        input=value.parents[given],
        target=value.parents[1 - given],
        result_shape=value.shape,
        numbers=numbers_of(tensors[given], None),
        target_numbers=numbers_of(tensors[1 - given], None),
        target_is_index=False,
    )


def leaves_kind_alone(name: str, call: Call, passing: frozenset[str]) -> bool:
    """Return whether an operation leaves the kind of its first operand alone."""
    if name in passing:
        return True
    if name not in ("add", "sub", "add_", "iadd"):
        return False
    other = call.args[1] if len(call.args) > 1 else None
    return isinstance(other, float | int) and abs(other) <= _TINY


def operation_name(name: str, call: Call) -> str:
    """Return the name of an operation; a clamp from below at 0 is told from others, for it acts as a ReLU."""
    if name not in ("clamp", "clip", "clamp_min", "clamp_", "clamp_min_"):
        return name
    bounds = [*call.args[1:], *call.kwargs.values()]
    upper = call.args[2] if len(call.args) > 2 else call.kwargs.get("max")
    return "clamp(min=0)" if bounds and bounds[0] == 0 and upper is None else name


def note_shapes(value: Value) -> None:
    """Mark what broadcasting made a matrix, and what a reshape has scrambled."""
    name, parents = value.operation, value.parents
    if name in RESHAPES and parents:
        value.is_scrambled = is_scrambled(parents[0].shape, value.shape)
    elif name in BINARY and len(parents) == 2:
        one, other = parents
        value.is_outer = is_outer(one.shape, other.shape) and not _is_pairwise(value, one, other)


def _is_pairwise(value: Value, one: Value, other: Value) -> bool:
    """Return whether two vectors are combined pair by pair on purpose.

    They are the same one; or both learn, or neither does, and the line itself makes a column of one of them.
    """
    if source(one) is source(other):
        return True
    column = one if len(one.shape) > len(other.shape) else other
    made = column.operation in _COLUMN_MAKERS and len(column.parents[0].shape) < len(column.shape)
    return made and one.learns == other.learns and _line(column.site) == _line(value.site)


def _line(site: Site | None) -> tuple[str, int] | None:
    return None if site is None else (site.code.co_filename, span(site)[0])


def note_factor(value: Value, call: Call, tensors: Sequence[torch.Tensor]) -> None:
    """Mark a product with a factor that does not learn and is all zero, or with the number 0."""
    if len(tensors) == 1 and value.learns:
        value.is_zero = any(isinstance(each, int | float) and each == 0 for each in call.args[:2])
    if len(tensors) != 2 or not value.learns:
        return
    fixed = [tensor for tensor, parent in zip(tensors, value.parents, strict=True) if not parent.learns]
    value.is_zero = len(fixed) == 1 and is_all_zero(fixed[0])


def note_normalisation(value: Value, call: Call) -> None:
    """Mark what was normalised along a dimension of size 1."""
    name = value.operation
    if name not in _NORMALISING or not value.parents or not value.learns:
        return
    shape = value.parents[0].shape
    if name == "layer_norm":
        sizes = call.kwargs.get("normalized_shape", call.args[1] if len(call.args) > 1 else ())
        value.keeps = len(shape) - 1 if tuple(sizes) and set(sizes) == {1} else None
        return
    dim = call.args[2] if len(call.args) > 2 else call.kwargs.get("dim", 1)
    if isinstance(dim, int) and -len(shape) <= dim < len(shape) and shape[dim] == 1:
        value.keeps = dim % len(shape)
