"""The seam between the statistics and a device: memory that a device can copy to, copies, and marks in its queue."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

import torch


class Mark(Protocol):
    """A place in the queue of a device."""

    def is_reached(self) -> bool:
        """Return whether the device has done everything before the mark; the host does not wait to find out."""

    def wait(self) -> None:
        """Wait until it has."""

    def seconds_since(self, earlier: Mark) -> float:
        """Return the device's time between two marks that are reached, made by the same transport."""


class Transport(Protocol):
    """The way from one device to the host."""

    def buffer(self, numel: int) -> torch.Tensor:
        """Return host memory that the device can write to on its own: float64 [numel], on the CPU."""

    def copy(self, source: torch.Tensor, target: torch.Tensor) -> None:
        """Queue a copy from the device into such memory, behind all that was queued before."""

    def upload(self, numbers: Sequence[int]) -> torch.Tensor:
        """Return integers on the device, int64, that nobody waits for."""

    def mark(self) -> Mark:
        """Return a mark behind all that was queued before."""


class Transports(Protocol):
    """All devices of the process."""

    def in_use(self) -> bool:
        """Return whether the program uses one of them; asked at every recorded step."""

    def is_capturing(self) -> bool:
        """Return whether what is launched now is recorded to be played again, and must not be looked at."""

    def to(self, device: torch.device) -> Transport | None:
        """Return the way from a device; None for a device that is read at once, like the CPU."""


@dataclass(frozen=True, slots=True)
class CudaMark:
    """An event."""

    event: torch.cuda.Event

    def is_reached(self) -> bool:
        """See `Mark`."""
        return bool(self.event.query())  # type: ignore[no-untyped-call]

    def wait(self) -> None:
        """See `Mark`."""
        self.event.synchronize()

    def seconds_since(self, earlier: Mark) -> float:
        """See `Mark`."""
        return float(earlier.event.elapsed_time(self.event)) / 1000 if isinstance(earlier, CudaMark) else 0.0


@dataclass(frozen=True, slots=True)
class CudaTransport:
    """A CUDA or ROCm device.

    Copies are queued on the stream that the tensors were reduced on. A stream of their own would take two more events,
    and the allocator would have to be told of it, to hide the few microseconds that 100 kB take.
    """

    device: torch.device

    def buffer(self, numel: int) -> torch.Tensor:
        """See `Transport`."""
        return torch.empty(numel, dtype=torch.float64, device="cpu", pin_memory=True)

    def copy(self, source: torch.Tensor, target: torch.Tensor) -> None:
        """See `Transport`."""
        target.copy_(source, non_blocking=True)

    def upload(self, numbers: Sequence[int]) -> torch.Tensor:
        """See `Transport`; torch keeps the host's memory until it has been read."""
        here = torch.tensor(numbers, dtype=torch.int64, device="cpu").pin_memory()
        return here.to(self.device, non_blocking=True)

    def mark(self) -> CudaMark:
        """See `Transport`."""
        event = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
        event.record(torch.cuda.current_stream(self.device))
        return CudaMark(event)


def is_in_use() -> bool:
    """Return whether the program has used CUDA or ROCm."""
    return bool(torch.cuda.is_initialized())  # type: ignore[no-untyped-call]


def is_capturing() -> bool:
    """Return whether what is launched now becomes part of a graph of the program's."""
    return is_in_use() and torch.cuda.is_current_stream_capturing()


@dataclass(frozen=True, slots=True)
class CudaTransports:
    """The CUDA or ROCm devices of this process."""

    _known: dict[torch.device, CudaTransport] = field(default_factory=dict)

    def in_use(self) -> bool:
        """See `Transports`."""
        return is_in_use()

    def is_capturing(self) -> bool:
        """See `Transports`."""
        return is_capturing()

    def to(self, device: torch.device) -> CudaTransport | None:
        """See `Transports`."""
        if device.type != "cuda":
            return None
        found = self._known.get(device)
        if found is None:
            found = self._known[device] = CudaTransport(device)
        return found
