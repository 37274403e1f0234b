"""Choices among the recorded facts that several rules make."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from itertools import pairwise

from whygrad.evidence import Evidence
from whygrad.model import Module, Optimizer, Parameter, Place, Role, Statistics
from whygrad.rules._once import once

_MANY_LOADS = 3  # as federated rounds make them: what is loaded that often learns elsewhere
_SAME = 1e-6  # two sums of the same numbers, taken in another order, differ by less


def names(parameters: Iterable[Parameter]) -> tuple[str, ...]:
    """Return the names of parameters, in order, each once."""
    return tuple(dict.fromkeys(parameter.name for parameter in parameters))


def by_line(
    parameters: Iterable[Parameter], place: Callable[[Parameter], Place | None]
) -> list[tuple[Place | None, tuple[Parameter, ...]]]:
    """Group parameters by the line of their place, first seen first; those without a place are one group."""
    places: dict[tuple[str, int] | None, Place | None] = {}
    groups: dict[tuple[str, int] | None, list[Parameter]] = {}
    for parameter in parameters:
        where = place(parameter)
        line = None if where is None else (where.file, where.line)
        places.setdefault(line, where)
        groups.setdefault(line, []).append(parameter)
    return [(places[line], tuple(members)) for line, members in groups.items()]


def held_by(evidence: Evidence, optimizer: Optimizer) -> tuple[Parameter, ...]:
    """Return the parameters that an optimizer ever held."""
    return _held(evidence).get(optimizer.id, ())


@once
def _held(evidence: Evidence) -> Mapping[int, tuple[Parameter, ...]]:
    """Return id of an optimizer -> the parameters that it ever held."""
    found: dict[int, list[Parameter]] = {}
    for parameter in evidence.parameters:
        for optimizer in set(parameter.optimizers):
            found.setdefault(optimizer, []).append(parameter)
    return {optimizer: tuple(held) for optimizer, held in found.items()}


def optimizers_of(evidence: Evidence, parameter: Parameter) -> tuple[Optimizer, ...]:
    """Return the optimizers that ever held a parameter."""
    return _holding(evidence, parameter.optimizers)


@once
def _holding(evidence: Evidence, ids: tuple[int, ...]) -> tuple[Optimizer, ...]:
    return tuple(optimizer for optimizer in evidence.optimizers if optimizer.id in ids)


def optimizer_names(evidence: Evidence, parameter: Parameter) -> list[str]:
    """Return the names of the optimizers that ever held a parameter."""
    return [optimizer.name for optimizer in optimizers_of(evidence, parameter)]


def is_stepped(evidence: Evidence, parameter: Parameter) -> bool:
    """Return whether an optimizer that holds the parameter ever stepped."""
    return any(optimizer.steps for optimizer in optimizers_of(evidence, parameter))


def holder(evidence: Evidence, parameter: Parameter) -> Module | None:
    """Return the module that holds a parameter, if it was seen being called."""
    if parameter.order is None:
        return None
    return _first_called(evidence).get(parameter.order)


@once
def _first_called(evidence: Evidence) -> Mapping[int | None, Module]:
    """Return place in the forward order -> the module that was called there."""
    return {module.order: module for module in reversed(evidence.modules)}


def has_moved(evidence: Evidence, parameter: Parameter) -> bool:
    """Return whether a parameter that no optimizer moves has changed its value, as far as was recorded.

    Weights that were loaded once or twice in the middle of a run have not learned by that. A write through `.data` is
    no change in torch's own books; the recorded weights show it.
    """
    weights = [statistics for _, statistics in evidence.series(Role.WEIGHT, parameter.id)]
    seen = sum(not _same(one, following) for one, following in pairwise(weights))
    changes = max(parameter.changed_outside, seen)
    return changes > (parameter.loads if parameter.loads < _MANY_LOADS else 0)


def _same(one: Statistics, other: Statistics) -> bool:
    pairs = ((one.sum_abs, other.sum_abs), (one.sum_squares, other.sum_squares), (one.max_abs, other.max_abs))
    return all(math.isclose(a, b, rel_tol=_SAME) for a, b in pairs)


def has_crashed(evidence: Evidence) -> bool:
    """Return whether an exception ended the program; a person who stops a run that does not learn is none."""
    raised = evidence.info.raised
    return raised is not None and raised.type != "KeyboardInterrupt"
