"""Calls of losses and softmaxes, added up by line and by what they were fed with; they keep no value alive."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from whygrad.model import LossCall, Place, SoftmaxCall
from whygrad.probe.losses.measures import LossLook, Numbers
from whygrad.probe.losses.values import SoftmaxLook, Value, activation
from whygrad.probe.source import Site, place_or_none

MAX_ROWS = 2000  # of each table


@dataclass(slots=True)
class LossRow:
    """The calls of one loss on one line, with inputs of one kind."""

    first: LossCall  # what does not change from call to call
    numbers: list[Numbers] = field(default_factory=list)
    targets: list[Numbers] = field(default_factory=list)

    def fact(self) -> LossCall:
        """Return the row as stored."""
        return replace(
            self.first,
            calls=len(self.numbers),
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

    first: SoftmaxCall
    sizes: list[int] = field(default_factory=list)
    uses: dict[tuple[int, str], Site | None] = field(default_factory=dict)

    def add(self, value: Value, look: SoftmaxLook) -> None:
        """Count one more call."""
        self.sizes.append(value.shape[look.dim])
        for dim, how, site in look.uses:
            self.uses.setdefault((dim, how), site)

    def fact(self) -> SoftmaxCall:
        """Return the row as stored."""
        return replace(
            self.first,
            calls=len(self.sizes),
            smallest=min(self.sizes),
            largest=max(self.sizes),
            used_dims=tuple(dim for dim, _ in self.uses),
            used_by=tuple(how for _, how in self.uses),
            used_at=place_or_none(next(iter(self.uses.values()), None)),
        )


@dataclass(slots=True)
class Tables:
    """What backward passes led back to, over the run."""

    losses: dict[tuple[Any, ...], LossRow] = field(default_factory=dict)
    softmaxes: dict[tuple[Any, ...], SoftmaxRow] = field(default_factory=dict)

    def facts(self) -> Iterator[LossCall | SoftmaxCall]:
        """Yield all rows."""
        yield from (row.fact() for row in self.losses.values())
        yield from (row.fact() for row in self.softmaxes.values())


def loss_key(value: Value, look: LossLook) -> tuple[Any, ...]:
    """Return what tells rows of losses apart."""
    last = activation(look.input)
    return (look.function, value.site, None if last is None else (last.operation, last.place_site))


def softmax_key(value: Value, look: SoftmaxLook) -> tuple[Any, ...]:
    """Return what tells rows of softmaxes apart."""
    return (value.operation, value.place_site, look.dim, len(value.shape))


def named_activation(value: Value | None) -> tuple[str, Place | None]:
    """Return an activation's name and line."""
    return ("", None) if value is None else (value.operation, place_or_none(value.place_site))


def _least(values: Iterable[float]) -> float:
    return min((value for value in values if not math.isnan(value)), default=math.nan)


def _most(values: Iterable[float]) -> float:
    return max((value for value in values if not math.isnan(value)), default=math.nan)


def _mean(values: Iterable[float]) -> float:
    known = [value for value in values if not math.isnan(value)]
    return sum(known) / len(known) if known else math.nan
