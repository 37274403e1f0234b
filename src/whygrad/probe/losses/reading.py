"""From the loss that a backward pass ran on back to what was fed into it."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from whygrad.model import LossCall, SoftmaxCall
from whygrad.probe.losses.names import (
    BINARY_LOSSES,
    CLASS_LOSSES,
    ELEMENTWISE,
    LOSS_REGION,
    LOSSES,
    MOVES,
    REGRESSION_LOSSES,
    RESHAPES,
    SOFTMAXES,
)
from whygrad.probe.losses.shapes import is_class_last
from whygrad.probe.losses.tables import (
    MAX_ROWS,
    LossRow,
    SoftmaxRow,
    Tables,
    loss_key,
    named_activation,
    softmax_key,
)
from whygrad.probe.losses.values import SoftmaxLook, Value, activation, ancestors, nearest_parameters
from whygrad.probe.source import place_or_none

if TYPE_CHECKING:
    from whygrad.probe.losses.measures import LossLook
    from whygrad.probe.session import Session

BROADCASTING_LOSSES = REGRESSION_LOSSES | BINARY_LOSSES
POINTWISE_AND_SHAPE = ELEMENTWISE | MOVES | RESHAPES
_STILL = frozenset(("contiguous", "clone", "detach", "data", "float", "double", "half", "to"))


@dataclass(frozen=True, slots=True)
class _Pass:
    """One backward pass."""

    values: list[Value]  # all that the loss was computed from, the nearest first
    region: list[Value]  # of them: the loss itself, the losses it adds up, and what they compare
    losses: list[Value]
    consumers: dict[int, list[Value]]  # id of a value -> who took it


def read(session: Session, tables: Tables, roots: Sequence[Value]) -> None:
    """Note the losses, softmaxes, broadcasts and reshapes that led to the roots of a backward pass."""
    present = _pass(roots)
    for value in present.losses:
        if value.loss is not None:
            _note_loss(session, tables, value, value.loss)
            _mark_classes(value.loss)
    batch = _batch(present)
    for value in present.values:
        if value.softmax is not None:
            _note_softmax(session, tables, value, batch)
        if value.is_scrambled and _holds_data(value) and not _is_undone(value, present):
            _note_event(session, "scrambled_reshape", value, before=value.parents[0].shape, after=value.shape)
        if value.is_zero:
            _note_factor(session, value)
        if value.operation == "logsumexp":
            _note_logits(session, value)
        if value.keeps is not None:
            _note_event(session, "unit_normalisation", value, shape=value.parents[0].shape, dim=value.keeps)
    for value in present.region:
        if value.is_outer and not _is_matrix(value, present):
            shapes = [parent.shape for parent in value.parents[:2]]
            _note_event(session, "outer_broadcast", value, shapes=shapes, result=value.shape)


def _mark_classes(look: LossLook) -> None:
    """Mark a reshape that makes the channels of what it takes the last dimension, right before a loss over classes."""
    value = look.input
    while value.passes and value.operation not in RESHAPES:
        value = value.parents[0]
    if look.function in CLASS_LOSSES and value.operation in RESHAPES:
        value.is_scrambled |= is_class_last(value.parents[0].shape, value.shape)


def _batch(present: _Pass) -> int | None:
    """Return the number of samples: size of dimension 0 of what most losses take, else of what most layers take."""
    taken = [value.loss.input.shape for value in present.losses if value.loss is not None]
    layers = (value for value in present.values if any(parent.leaf is not None for parent in value.parents[1:]))
    sizes = [shape[0] for shape in taken if shape] or [v.parents[0].shape[0] for v in layers if v.parents[0].shape]
    return max(set(sizes), key=sizes.count) if sizes else None


def _pass(roots: Sequence[Value]) -> _Pass:
    values = list(ancestors(roots))
    consumers: dict[int, list[Value]] = {}
    for value in values:
        for parent in value.parents:
            consumers.setdefault(id(parent), []).append(value)
    region: list[Value] = []
    losses: list[Value] = []
    todo, seen = deque(roots), set(map(id, roots))
    compared: set[int] = set()  # what a loss compares: no losses are looked for in there
    while todo:
        value = todo.popleft()
        region.append(value)
        is_loss = value.loss is not None and id(value) not in compared
        if is_loss:
            losses.append(value)
        if value.operation not in LOSS_REGION and value.operation not in LOSSES:
            continue
        for parent in value.parents:
            if is_loss or id(value) in compared:
                compared.add(id(parent))
            if id(parent) not in seen:
                seen.add(id(parent))
                todo.append(parent)
    return _Pass(values, region, losses, consumers)


# -- rows --------------------------------------------------------------------------------------------------------------


def _note_loss(session: Session, tables: Tables, value: Value, look: LossLook) -> None:
    key = loss_key(value, look)
    row = tables.losses.get(key)
    if row is None:
        if len(tables.losses) >= MAX_ROWS:
            return
        row = tables.losses[key] = LossRow(_loss_call(session, len(tables.losses), value, look))
    row.numbers.append(look.numbers)
    row.targets.append(look.target_numbers)


def _loss_call(session: Session, number: int, value: Value, look: LossLook) -> LossCall:
    before = list(ancestors([look.input]))
    last = activation(look.input)
    outer, outer_at = named_activation(last)
    inner, inner_at = named_activation(activation(last.parents[0]) if last is not None and last.parents else None)
    softmax = next((each for each in before if each.operation in SOFTMAXES), None)
    return LossCall(
        id=number,
        function=look.function,
        place=place_or_none(value.site),
        reduction=look.reduction,
        shape=look.input.shape,
        target_shape=look.target.shape,
        result_shape=look.result_shape,
        target_is_index=look.target_is_index,
        target_from_model=_is_from_model(look.target),
        activation=outer,
        activation_at=outer_at,
        inner_activation=inner,
        inner_activation_at=inner_at,
        softmax_at=named_activation(softmax)[1],
        parameters=_ids(session, before),
    )


def _note_softmax(session: Session, tables: Tables, value: Value, batch: int | None) -> None:
    look = value.softmax
    if look is None or not value.learns:
        return
    key = softmax_key(value, look)
    row = tables.softmaxes.get(key)
    if row is None:
        if len(tables.softmaxes) >= MAX_ROWS:
            return
        row = tables.softmaxes[key] = SoftmaxRow(_softmax_call(session, len(tables.softmaxes), value, look, batch))
    row.add(value, look)


def _softmax_call(session: Session, number: int, value: Value, look: SoftmaxLook, batch: int | None) -> SoftmaxCall:
    name, line = named_activation(activation(value.parents[0]))
    return SoftmaxCall(
        id=number,
        function=value.operation,
        place=place_or_none(value.place_site),
        shape=value.shape,
        dim=look.dim,
        batch=batch,
        inner_activation=name,
        inner_activation_at=line,
        is_of_product=look.from_product,
        parameters=_ids(session, list(ancestors([value]))),
        nearest=_ids(session, nearest_parameters(value)),
    )


def _is_from_model(target: Value) -> bool:
    """Return whether a target is computed from parameters, and no data is added to it on the way."""
    if not _has_parameters(target):
        return False
    todo, seen = deque([target]), {id(target)}
    while todo:
        value = todo.popleft()
        if value.operation not in POINTWISE_AND_SHAPE:
            continue
        for parent in value.parents:
            if math.prod(parent.shape) > 1 and not _has_parameters(parent):
                return False
            if id(parent) not in seen:
                seen.add(id(parent))
                todo.append(parent)
    return True


def _has_parameters(value: Value) -> bool:
    return any(each.leaf is not None for each in ancestors([value]))


def _ids(session: Session, values: Sequence[Value]) -> tuple[int, ...]:
    tensors = (value.leaf() for value in values if value.leaf is not None)
    entries = (session.parameters.get(tensor) for tensor in tensors if tensor is not None)
    return tuple(dict.fromkeys(entry.id for entry in entries if entry is not None))


# -- events ------------------------------------------------------------------------------------------------------------


def _note_event(session: Session, kind: str, value: Value, **detail: Any) -> None:
    parameters = _ids(session, list(ancestors([value])))
    session.events.note(
        kind, session.training.steps, value.site, value.operation, parameters=parameters, learns=value.learns, **detail
    )


def _note_factor(session: Session, product: Value) -> None:
    """Note a factor that is all zero: where it was made, else where it is multiplied with, as a number always is."""
    factor = next((parent for parent in product.parents if not parent.learns), None)
    parameters = _ids(session, list(ancestors([product])))
    made = factor is not None and factor.site is not None
    site, made_by = (factor.site, factor.operation) if factor and made else (product.site, product.operation)
    shape = None if factor is None else factor.shape
    session.events.note("zero_factor", session.training.steps, site, made_by, shape=shape, parameters=parameters)


def _note_logits(session: Session, value: Value) -> None:
    """Note a distribution that takes the result of a softmax for logits, which it normalises by logsumexp."""
    distribution, _, method = value.inside.partition(".")
    given = activation(value.parents[0])
    if method != "__init__" or "Categorical" not in distribution or given is None:
        return
    if given.operation in SOFTMAXES and given.operation != "log_softmax":
        ids = _ids(session, list(ancestors([value])))
        session.events.note("softmax_as_logits", session.training.steps, given.place_site, distribution, parameters=ids)


def _is_matrix(value: Value, present: _Pass) -> bool:
    """Return whether what broadcasting made a matrix is treated as one: then it is meant.

    Something of the same size is combined with it, or it is reduced or picked from along a dimension.
    """
    todo, seen = deque([value]), {id(value)}
    while todo:
        one = todo.popleft()
        for user in present.consumers.get(id(one), ()):
            if id(user) in seen or not user.shape:  # reduced to one number
                continue
            if not _is_pointwise(user) or any(_is_other_matrix(p, one, seen) for p in user.parents):
                return True
            seen.add(id(user))
            todo.append(user)
    return False


def _is_pointwise(value: Value) -> bool:
    if value.operation in ("min", "max"):
        return len(value.parents) == 2
    return value.operation in ELEMENTWISE or value.operation in _STILL or value.operation in BROADCASTING_LOSSES


def _is_other_matrix(parent: Value, one: Value, seen: set[int]) -> bool:
    """Return whether an operand is as large as a spread one, and was not made by the same kind of broadcasting."""
    if id(parent) in seen or math.prod(parent.shape) < math.prod(one.shape):
        return False
    return not any(value.is_outer for value in _pointwise_ancestors(parent))


def _pointwise_ancestors(value: Value) -> Iterator[Value]:
    todo, seen = deque([value]), {id(value)}
    while todo:
        one = todo.popleft()
        yield one
        fresh = [parent for parent in one.parents if id(parent) not in seen] if _is_pointwise(one) else []
        seen.update(map(id, fresh))
        todo.extend(fresh)


def _holds_data(value: Value) -> bool:
    """Return whether a value was not computed from parameters alone: the order of fresh weights means nothing."""
    return any(each.leaf is None and not each.parents for each in ancestors([value]))


def _is_undone(value: Value, present: _Pass) -> bool:
    """Return whether a reshape leads nowhere but to another one that takes it back, or flattens everything."""
    users = present.consumers.get(id(value), [])
    before = value.parents[0].shape
    flat = all(user.operation in RESHAPES and (user.shape == before or len(user.shape) == 1) for user in users)
    twins = (v for v in present.values if v.is_scrambled and v is not value and v.shape == value.shape)
    return (bool(users) and flat) or any(v.parents[0].shape == before and v.learns != value.learns for v in twins)
