"""The numbers behind the pictures: recorded steps thinned to a bounded size, as base64 of float32.

A page of 300 parameters and 2,000 recorded steps stays below 6 MB. What does not fit is left out evenly, and the page
says so.
"""

from __future__ import annotations

import base64
import math
import sys
from array import array
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from whygrad.evidence import Evidence
from whygrad.model import HISTOGRAM_BINS, Role, Statistics
from whygrad.spread import spread

MAX_CELLS = 120_000  # tensors x steps of each picture
MAX_STEPS = 1000  # more columns than that are no use on a screen
MAX_HISTOGRAM_CELLS = 20_000  # tensors x steps; each is 32 bytes

_Column = Callable[[Statistics], float]
Track = Callable[[Sequence[int]], Iterable[int]]
"""Passes the steps on while they are read, and may show how far it is."""


@dataclass(frozen=True, slots=True)
class Grid:
    """Numbers of some tensors at some steps."""

    steps: tuple[int, ...]  # [S]
    recorded: int  # steps that were recorded; more than `steps` if some are left out
    columns: dict[str, str]  # name -> base64 of float32 [tensors, S]; NaN where nothing was recorded


def thinned(
    steps: Sequence[int], tensors: int, cells: int = MAX_CELLS, *, at: Sequence[int] | None = None
) -> tuple[int, ...]:
    """Return at most as many steps as the page has room for, evenly spread, first and last included.

    Args:
        steps: All there are.
        tensors: That are drawn at each step.
        cells: Tensors x steps that there is room for.
        at: Where each step lies; None: as far from its neighbours as any other.
    """
    room = max(2, min(MAX_STEPS, cells // max(1, tensors)))
    return tuple(steps[i] for i in spread(range(len(steps)) if at is None else at, room))


def grid(evidence: Evidence, role: Role, ids: Sequence[int], columns: dict[str, _Column], track: Track = iter) -> Grid:
    """Return the statistics of tensors in one role over the recorded steps."""
    recorded = evidence.matrices.steps(role)
    steps = thinned(recorded, len(ids), at=evidence.recorded_before(recorded))
    values = {name: [math.nan] * (len(ids) * len(steps)) for name in columns}
    for at, step in enumerate(track(steps)):
        found = evidence.matrices.read(step, role)
        for row, tensor in enumerate(ids):
            statistics = found.get(tensor)
            if statistics is not None:
                for name, column in columns.items():
                    values[name][row * len(steps) + at] = column(statistics)
    return Grid(steps, len(recorded), {name: packed(numbers) for name, numbers in values.items()})


def update_ratios(evidence: Evidence, ids: Sequence[int], track: Track = iter) -> Grid:
    """Return the size of each update against its weight: RMS of the one over RMS of the other."""
    recorded = evidence.matrices.steps(Role.UPDATE)
    steps = thinned(recorded, len(ids), at=evidence.recorded_before(recorded))
    values = [math.nan] * (len(ids) * len(steps))
    for at, step in enumerate(track(steps)):
        updates, weights = evidence.matrices.read(step, Role.UPDATE), evidence.matrices.read(step, Role.WEIGHT)
        for row, tensor in enumerate(ids):
            update, weight = updates.get(tensor), weights.get(tensor)
            if update is not None and weight is not None and weight.rms > 0:
                values[row * len(steps) + at] = update.rms / weight.rms
    return Grid(steps, len(recorded), {"update_ratio": packed(values)})


def histograms(evidence: Evidence, ids: Sequence[int], track: Track = iter) -> Grid:
    """Return the size histogram of each gradient over time: shares of its largest bin as bytes, [tensors, S, 32]."""
    recorded = evidence.matrices.steps(Role.GRADIENT)
    chosen = thinned(recorded, len(ids), MAX_HISTOGRAM_CELLS, at=evidence.recorded_before(recorded))
    steps = tuple(step for step in chosen if evidence.matrices.histogram(step, Role.GRADIENT))
    shares = bytearray(len(ids) * len(steps) * HISTOGRAM_BINS)
    for at, step in enumerate(track(steps)):
        found = evidence.matrices.histogram(step, Role.GRADIENT)
        for row, tensor in enumerate(ids):
            counts = found.get(tensor)
            largest = max(counts, default=0) if counts else 0
            if counts and largest:
                start = (row * len(steps) + at) * HISTOGRAM_BINS
                shares[start : start + HISTOGRAM_BINS] = bytes(round(255 * count / largest) for count in counts)
    return Grid(steps, len(recorded), {"histogram": base64.b64encode(bytes(shares)).decode("ascii")})


def packed(numbers: Sequence[float]) -> str:
    """Return base64 of little-endian float32; what is too large for that is Inf."""
    values = array("f", (_narrowed(number) for number in numbers))
    if sys.byteorder == "big":
        values.byteswap()
    return base64.b64encode(values.tobytes()).decode("ascii")


def _narrowed(number: float) -> float:
    return math.copysign(math.inf, number) if abs(number) > 3.4e38 else number
