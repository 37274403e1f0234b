"""The ranks of one run side by side: which parameters should be equal on all of them, and from when on they are not.

The probe never communicates: each rank measures its own copy of a parameter before every step. Equal copies have equal
statistics, to the last bit; copies that were trained apart do not.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from whygrad.evidence import Evidence
from whygrad.model import Finding, Parameter, Place, Replica, Role, Severity, Statistics
from whygrad.rules._select import names, optimizers_of

_DENSE = 32  # of the steps that all ranks recorded: the first ones, and as many of the others
_SAME_WEIGHTS = 1e-9  # two sums of the same numbers in float64, taken in another order, differ by less
_SAME_GRADIENTS = 1e-6  # gradients are averaged in their own precision, on other paths in larger groups
_MIN_STEPS = 3

Copies = tuple[Parameter, ...]  # of one parameter, by rank


class Cause(StrEnum):
    """Why the copies of a parameter parted."""

    OUTSIDE = "outside"  # the model ran without its wrapper, so no gradient was averaged
    NO_SYNC = "no-sync"  # the last backward pass before the step ran under no_sync
    REPEATED = "repeated"  # a second backward pass after one call of the wrapper
    LATE = "late"  # it joined, or was unfrozen, after the model was wrapped
    START = "start"  # its copies were different before the first step
    RATE = "rate"  # the ranks step with different learning rates
    CHANGED = "changed"  # the gradient was changed after it was averaged
    UPDATE = "update"  # equal gradients, different updates
    UNKNOWN = "unknown"  # the gradients differed, and calls of the wrapper could not be observed


@dataclass(frozen=True, slots=True)
class Parting:
    """Parameters that are not equal on all ranks any more, for one cause."""

    cause: Cause
    parameters: tuple[Parameter, ...]  # of the first rank, in forward order
    replica: Replica | None  # what wraps them there
    first: int  # steps done when they first differed
    compared: int  # steps that were compared
    gap: float  # largest difference between the norms of two copies at the last of them, as a share of the norm


@dataclass(frozen=True, slots=True)
class _Track:
    """One parameter on every rank, step by step."""

    copies: Copies
    positions: list[int]  # the steps compared, counted from 0 by its optimizer
    weights: list[tuple[Statistics, ...]]
    gradients: list[tuple[Statistics, ...]]  # empty where a rank had none


def partings(ranks: Sequence[Evidence]) -> list[Parting]:
    """Return the parameters that should be equal on all ranks and have parted for good, cause by cause.

    Should be equal: what DistributedDataParallel wraps; without it, models of which every gradient is the same on all
    ranks, since the program averages them itself. Copies that become equal again are averaged on purpose, as in local
    SGD.
    """
    if len(ranks) < 2:
        return []
    wrapped = {replica.root: replica for replica in ranks[0].replicas if replica.world_size > 1}
    found: list[Parting] = []
    for root, tracks in _tracks_by_root(ranks).items():
        replica = wrapped.get(root)
        if replica is not None or _are_averaged(tracks):
            found += _of_root(ranks, tracks, replica)
    return found


# -- copies ------------------------------------------------------------------------------------------------------------


def _tracks_by_root(ranks: Sequence[Evidence]) -> dict[str, list[_Track]]:
    found: dict[str, list[_Track]] = {}
    for group in _by_optimizers(ranks):
        steps = [_steps(evidence, first) for evidence, first in zip(ranks, group[0], strict=True)]
        positions = _chosen(ranks, steps)
        # most runs end with equal copies: then nothing else is read
        if any(
            not _alike(track.weights[-1], _SAME_WEIGHTS) for track in _measured(ranks, group, steps, positions[-1:])
        ):
            for track in _measured(ranks, group, steps, positions):
                if len(track.positions) >= _MIN_STEPS:
                    found.setdefault(track.copies[0].root, []).append(track)
    return found


def _by_optimizers(ranks: Sequence[Evidence]) -> list[list[Copies]]:
    """Return the parameters that are trained on every rank, those that the same optimizers hold together."""
    known = [{_key(p): p for p in evidence.parameters} for evidence in ranks[1:]]
    groups: dict[tuple[tuple[int, ...], ...], list[Copies]] = {}
    for parameter in ranks[0].parameters_in_order:
        others = [parameters.get(_key(parameter)) for parameters in known]
        copies = (parameter, *(other for other in others if other is not None))
        if len(copies) == len(ranks) and all(_is_trained(p) and p.shape == parameter.shape for p in copies):
            groups.setdefault(tuple(p.optimizers for p in copies), []).append(copies)
    return list(groups.values())


def _key(parameter: Parameter) -> tuple[str, str, str]:
    """Return what a parameter is called on every rank: its name is led by the root's where there are several roots."""
    return parameter.root, parameter.module, parameter.attribute


def _is_trained(parameter: Parameter) -> bool:
    return bool(parameter.registered and parameter.optimizers and parameter.requires_grad and not parameter.stale)


def _measured(
    ranks: Sequence[Evidence], group: Sequence[Copies], steps: Sequence[Mapping[int, int]], positions: Sequence[int]
) -> list[_Track]:
    """Return the statistics of parameters that step together, at some of their steps."""
    tracks = [_Track(copies, [], [], []) for copies in group]
    for position in positions:
        at = list(zip(ranks, (own[position] for own in steps), strict=True))
        weights = [evidence.matrices.read(step, Role.WEIGHT) for evidence, step in at]
        gradients = [evidence.matrices.read(step, Role.GRADIENT) for evidence, step in at]
        for track in tracks:
            of_weights = [rows.get(p.id) for rows, p in zip(weights, track.copies, strict=True)]
            of_gradients = [rows.get(p.id) for rows, p in zip(gradients, track.copies, strict=True)]
            if None not in of_weights:
                track.positions.append(position)
                track.weights.append(_all_of(of_weights))
                track.gradients.append(_all_of(of_gradients))
    return [track for track in tracks if track.positions]


def _all_of(found: Sequence[Statistics | None]) -> tuple[Statistics, ...]:
    there = tuple(statistics for statistics in found if statistics is not None)
    return there if len(there) == len(found) else ()


def _steps(evidence: Evidence, parameter: Parameter) -> dict[int, int]:
    """Return the ids of the steps of the first optimizer that held a parameter, by their position among them."""
    own = (step for step in evidence.steps if step.optimizer == parameter.optimizers[0])
    return {index if step.position is None else step.position: step.id for index, step in enumerate(own)}


def _chosen(ranks: Sequence[Evidence], steps: Sequence[Mapping[int, int]]) -> list[int]:
    """Return the positions to compare: ranks make the same steps, but number and record them on their own."""
    recorded = [set(evidence.matrices.steps(Role.WEIGHT)) for evidence in ranks]
    common = [
        position
        for position in steps[0]
        if all(own.get(position) in there for own, there in zip(steps, recorded, strict=True))
    ]
    later = common[_DENSE:]
    return common[:_DENSE] + later[:: -max(1, math.ceil(len(later) / _DENSE))][::-1]


def _alike(copies: Sequence[Statistics], tolerance: float) -> bool:
    """Return whether statistics of several ranks are those of equal numbers."""
    first = copies[0]
    room, squares = tolerance * first.sum_abs, tolerance * first.sum_squares
    return all(
        other.nonfinite == first.nonfinite
        and abs(other.sum - first.sum) <= room
        and abs(other.sum_abs - first.sum_abs) <= room
        and abs(other.sum_squares - first.sum_squares) <= squares
        and abs(other.max_abs - first.max_abs) <= tolerance * first.max_abs
        for other in copies[1:]
    )


def _are_averaged(tracks: Sequence[_Track]) -> bool:
    """Return whether every gradient of a model is the same on all ranks at every step, and hardly by chance."""
    gradients = [copies for track in tracks for copies in track.gradients if copies]
    moving = [copies for copies in gradients if copies[0].sum_abs > 0]
    return len(tracks) > 1 and len(moving) > len(tracks) and all(_alike(g, _SAME_GRADIENTS) for g in gradients)


# -- partings ----------------------------------------------------------------------------------------------------------


def _of_root(ranks: Sequence[Evidence], tracks: Sequence[_Track], replica: Replica | None) -> Iterator[Parting]:
    causes: dict[Cause, list[tuple[int, _Track]]] = {}
    for track in tracks:
        index = _parted_at(track)
        if index is not None:
            causes.setdefault(_cause(ranks, track, index, replica), []).append((index, track))
    for cause, members in causes.items():
        yield Parting(
            cause=cause,
            parameters=tuple(track.copies[0] for _, track in members),
            replica=replica,
            first=min(track.positions[index] for index, track in members),
            compared=max(len(track.positions) for _, track in members),
            gap=max(_gap(track.weights[-1]) for _, track in members),
        )


def _parted_at(track: _Track) -> int | None:
    """Return the first of the compared steps from which on no two copies were equal again."""
    apart = [not _alike(copies, _SAME_WEIGHTS) for copies in track.weights]
    if not apart[-1]:
        return None
    first = apart.index(True)
    return first if all(apart[first:]) else None


def _cause(ranks: Sequence[Evidence], track: _Track, index: int, replica: Replica | None) -> Cause:
    if index == 0:
        return Cause.START
    gradients = track.gradients[index - 1]
    if gradients and _alike(gradients, _SAME_GRADIENTS):
        return Cause.RATE if _rates_differ(ranks, track, track.positions[index - 1]) else Cause.UPDATE
    if replica is not None and track.copies[0].id not in replica.parameters:
        return Cause.LATE
    wrappers = [other for evidence in ranks for other in evidence.replicas if replica and other.id == replica.id]
    if wrappers and not any(wrapper.backwards for wrapper in wrappers):  # torch.autograd.grad: no hook of theirs ran
        return Cause.OUTSIDE
    return Cause(next((wrapper.local_why for wrapper in wrappers if wrapper.local_why), Cause.CHANGED))


def _rates_differ(ranks: Sequence[Evidence], track: _Track, position: int) -> bool:
    steps = [_steps(evidence, copy)[position] for evidence, copy in zip(ranks, track.copies, strict=True)]
    rates = {
        step.learning_rates
        for evidence, number in zip(ranks, steps, strict=True)
        for step in evidence.steps
        if step.id == number
    }
    return len(rates) > 1


def _gap(copies: Sequence[Statistics]) -> float:
    norms = [statistics.l2 for statistics in copies]
    return (max(norms) - min(norms)) / max(norms) if max(norms) > 0 else 0.0


# -- findings ----------------------------------------------------------------------------------------------------------


def parting_finding(
    slug: str, ranks: Sequence[Evidence], parting: Parting, places: Sequence[Place | None], *, message: str, fix: str
) -> Finding:
    """Return the finding about a parting, placed at the first known place; a hook may average on purpose later."""
    known = tuple(dict.fromkeys(place for place in places if place is not None))
    replica = parting.replica
    return Finding(
        rule=slug,
        severity=Severity.INFO if replica is not None and replica.hook else Severity.ERROR,
        tensors=names(parting.parameters),
        place=known[0] if known else None,
        message=message,
        fix=fix,
        evidence={
            "ranks": len(ranks),
            "first_step": parting.first,
            "compared_steps": parting.compared,
            "gap": parting.gap,
            **({} if replica is None else _counts(replica)),
        },
        also=known[1:],
    )


def _counts(replica: Replica) -> dict[str, int]:
    return {
        "steps": replica.steps,
        "local_steps": replica.local_steps,
        "backwards": replica.backwards,
        "local_backwards": replica.local_backwards,
        "wrapper_calls": replica.calls,
    }


def stepped_at(evidence: Evidence, parameter: Parameter) -> Place | None:
    """Return the line that steps the optimizer of a parameter."""
    return next((optimizer.stepped_at for optimizer in optimizers_of(evidence, parameter)), None)
