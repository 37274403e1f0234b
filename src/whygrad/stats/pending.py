"""Statistics that are on their way: of tensors on an accelerator they arrive some steps after they were asked for."""

# B = bins, S = statistics, T = tensors

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from whygrad.stats.kernel import Measured


class Pending(Protocol):
    """What was asked of several tensors."""

    @property
    def refused(self) -> dict[int, str]:
        """The tensors that cannot be measured, and why: known at once, their rows are zeros."""

    def is_ready(self) -> bool:
        """Return whether reading it makes nobody wait."""

    def read(self) -> Measured:
        """Return the statistics; wait for them where they are not ready, as at the end of a run."""


@dataclass(frozen=True, slots=True)
class Settled:
    """Statistics that are there, as those of CPU tensors are."""

    measured: Measured

    @property
    def refused(self) -> dict[int, str]:
        """See `Pending`."""
        return self.measured.refused

    def is_ready(self) -> bool:
        """See `Pending`."""
        return True

    def read(self) -> Measured:
        """See `Pending`."""
        return self.measured


@dataclass(frozen=True, slots=True)
class Chosen:
    """Some rows of what is pending."""

    pending: Pending
    rows: list[int]

    @property
    def refused(self) -> dict[int, str]:
        """See `Pending`."""
        why = self.pending.refused
        return {at: why[row] for at, row in enumerate(self.rows) if row in why}

    def is_ready(self) -> bool:
        """See `Pending`."""
        return self.pending.is_ready()

    def read(self) -> Measured:
        """See `Pending`."""
        found = self.pending.read()
        histograms = None if found.histograms is None else found.histograms[self.rows]
        return Measured(found.matrix[self.rows], histograms, self.refused)
