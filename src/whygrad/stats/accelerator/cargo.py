"""What was launched on devices, and how it is read when it has arrived."""

# B = bins, S = statistics, T = tensors

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import torch

from whygrad.model import STATISTICS
from whygrad.stats.accelerator.shipment import Shipment
from whygrad.stats.accelerator.transport import Mark
from whygrad.stats.kernel import Measured
from whygrad.stats.support import untracked


class Reading(Protocol):
    """How to read a vector that a device sent."""

    @property
    def numel(self) -> int:
        """Return its length."""

    def matrix(self, vector: torch.Tensor) -> torch.Tensor:
        """Return the statistics of the tensors, float64 [T, S], from the vector on the CPU."""

    def histograms(self, vector: torch.Tensor) -> torch.Tensor | None:
        """Return their counts by size, int32 [T, B]; None where they were not asked for."""


@dataclass(frozen=True, slots=True)
class Stacked:
    """The reading of a vector that is rows of statistics, one behind the other."""

    many: int

    @property
    def numel(self) -> int:
        """See `Reading`."""
        return self.many * len(STATISTICS)

    def matrix(self, vector: torch.Tensor) -> torch.Tensor:
        """See `Reading`."""
        return vector.view(self.many, len(STATISTICS))

    def histograms(self, _vector: torch.Tensor) -> torch.Tensor | None:
        """See `Reading`."""
        return None


class Reduction(NamedTuple):
    """Numbers on a device, and how to read them."""

    vector: torch.Tensor  # float64, as long as the reading says
    reading: Reading


@dataclass(slots=True)
class Cargo:
    """The numbers of some tensors of one device."""

    rows: list[int]  # which tensors those are, of all that were asked for
    reading: Reading
    vector: torch.Tensor | None  # on the device, until it is sent
    began: Mark
    ended: Mark
    host_s: float  # between the two marks
    shipment: Shipment | None = None
    offset: int = 0

    def is_ready(self) -> bool:
        """Return whether the numbers have arrived."""
        return self.shipment is not None and self.shipment.is_ready()

    def numbers(self) -> torch.Tensor:
        """Return the numbers of cargo that was sent, float64 on the CPU; wait for them where they are not there."""
        shipped = None if self.shipment is None else self.shipment.numbers()
        return torch.empty(0) if shipped is None else shipped[self.offset : self.offset + self.reading.numel]

    def excess_s(self) -> float:
        """Return what the device took beyond the host's time, which is counted already."""
        return max(0.0, self.ended.seconds_since(self.began) - self.host_s)


@dataclass(slots=True)
class Launched:
    """Statistics that devices are at work on; see `Pending`."""

    home: Measured  # a row for each tensor: zeros for those of the devices
    may_ask: Callable[[], bool]  # whether devices may be asked how far they are
    send: Callable[[], None]  # sends what was not sent yet
    note_excess: Callable[[float], None]  # told what devices took, see `Cargo.excess_s`
    cargo: list[Cargo] = field(default_factory=list)  # until it is read

    @property
    def refused(self) -> dict[int, str]:
        """See `Pending`."""
        return self.home.refused

    def is_ready(self) -> bool:
        """See `Pending`."""
        return not self.cargo or (self.may_ask() and all(each.is_ready() for each in self.cargo))

    @untracked
    def read(self) -> Measured:
        """See `Pending`."""
        if any(each.shipment is None for each in self.cargo):
            self.send()
        for each in self.cargo:
            vector = each.numbers()
            self.home.matrix[each.rows] = each.reading.matrix(vector)
            counts = each.reading.histograms(vector)
            if counts is not None and self.home.histograms is not None:
                self.home.histograms[each.rows] = counts
            self.note_excess(each.excess_s())
        self.cargo = []
        return self.home
