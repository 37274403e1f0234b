"""Calls of losses and softmaxes, added up by line and by what they were fed with."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from whygrad.model import LossCall, SoftmaxCall
from whygrad.probe.losses.measures import LossLook, Numbers
from whygrad.probe.losses.values import SoftmaxLook, Value, activation
from whygrad.probe.source import Site, place_or_none

MAX_ROWS = 2000  # of each table


@dataclass(frozen=True, slots=True)
class Origin:
    """Where the input of a loss comes from; looked up once for each row."""

    softmax: Value | None  # the nearest one, by whatever operations
    parameters: tuple[int, ...]  # ids
    target_from_model: bool  # the target is computed from parameters, and by no arithmetic from the program's data


@dataclass(slots=True)
class LossRow:
    """The calls of one loss on one line, with inputs of one kind."""

    id: int
    look: LossLook  # the first
    site: Site | None
    origin: Origin
    numbers: list[Numbers] = field(default_factory=list)
    targets: list[Numbers] = field(default_factory=list)

    def fact(self) -> LossCall:
        """Return the row as stored."""
        look, origin = self.look, self.origin
        last = activation(look.input)
        behind = activation(last.parents[0]) if last is not None and last.parents else None
        return LossCall(
            id=self.id,
            function=look.function,
            place=place_or_none(self.site),
            reduction=look.reduction,
            calls=len(self.numbers),
            shape=look.input.shape,
            target_shape=look.target.shape,
            result_shape=look.result_shape,
            target_is_index=look.target_is_index,
            target_from_model=origin.target_from_model,
            activation="" if last is None else last.operation,
            activation_at=None if last is None else place_or_none(last.place_site),
            inner_activation="" if behind is None else behind.operation,
            inner_activation_at=None if behind is None else place_or_none(behind.place_site),
            softmax_at=None if origin.softmax is None else place_or_none(origin.softmax.place_site),
            parameters=origin.parameters,
            low=_least(n.low for n in self.numbers),
            high=_most(n.high for n in self.numbers),
            sum_low=_least(n.sum_low for n in self.numbers),
            sum_high=_most(n.sum_high for n in self.numbers),
            exp_sum_low=_least(n.exp_low for n in self.numbers),
            exp_sum_high=_most(n.exp_high for n in self.numbers),
            target_low=_least(n.low for n in self.targets),
            target_high=_most(n.high for n in self.targets),
            target_negative=_mean(n.negative for n in self.targets),
            target_above_one=_mean(n.above_one for n in self.targets),
            target_below_minus_one=_mean(n.below_minus_one for n in self.targets),
        )


@dataclass(slots=True)
class SoftmaxRow:
    """The calls of one softmax on one line."""

    id: int
    value: Value  # of the first call
    look: SoftmaxLook
    parameters: tuple[int, ...]
    nearest: tuple[int, ...]
    batch: int | None
    sizes: list[int] = field(default_factory=list)
    reductions: dict[tuple[int, str], Site | None] = field(default_factory=dict)

    def fact(self) -> SoftmaxCall:
        """Return the row as stored."""
        value = self.value
        used = list(self.reductions)
        inner = activation(value.parents[0]) if value.parents else None
        return SoftmaxCall(
            id=self.id,
            function=value.operation,
            place=place_or_none(value.place_site),
            calls=len(self.sizes),
            shape=value.shape,
            dim=self.look.dim,
            smallest=min(self.sizes),
            largest=max(self.sizes),
            batch=self.batch,
            inner_activation="" if inner is None else inner.operation,
            inner_activation_at=None if inner is None else place_or_none(inner.place_site),
            is_of_product=self.look.from_product,
            used_dims=tuple(dim for dim, _ in used),
            used_by=tuple(how for _, how in used),
            used_at=place_or_none(next(iter(self.reductions.values()), None)),
            parameters=self.parameters,
            nearest=self.nearest,
        )


def loss_key(value: Value, look: LossLook) -> tuple[Any, ...]:
    """Return what tells rows of losses apart."""
    last = activation(look.input)
    return (look.function, value.site, None if last is None else (last.operation, last.place_site))


def softmax_key(value: Value, look: SoftmaxLook) -> tuple[Any, ...]:
    """Return what tells rows of softmaxes apart."""
    return (value.operation, value.place_site, look.dim, len(value.shape))


def _least(values: Iterator[float]) -> float:
    return min((value for value in values if not math.isnan(value)), default=math.nan)


def _most(values: Iterator[float]) -> float:
    return max((value for value in values if not math.isnan(value)), default=math.nan)


def _mean(values: Iterator[float]) -> float:
    known = [value for value in values if not math.isnan(value)]
    return sum(known) / len(known) if known else math.nan
