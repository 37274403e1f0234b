"""What is on its way from a device to the host: one copy of all that was reduced since the last one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch

from whygrad.stats.accelerator.transport import Mark, Transport

_LEAST = 4096  # numbers in a buffer: 32 kB


@dataclass(slots=True)
class Shipment:
    """Numbers on their way; many readers share one."""

    mark: Mark
    numel: int
    _buffer: torch.Tensor | None  # until they were taken out of it
    _landed: torch.Tensor | None = None

    def land(self) -> torch.Tensor | None:
        """Take the numbers out of the buffer if the device is done with it; return the buffer, which is free then."""
        if self._buffer is None or not self.mark.is_reached():
            return None
        free, self._buffer = self._buffer, None
        self._landed = free[: self.numel].clone()
        return free

    def is_ready(self) -> bool:
        """Return whether the numbers are there."""
        return self._landed is not None or self.mark.is_reached()

    def numbers(self) -> torch.Tensor:
        """Return the numbers, float64 on the CPU; wait for them where they are not there."""
        if self._landed is None and self._buffer is not None:
            if not self.mark.is_reached():
                self.mark.wait()
            self._landed = self._buffer[: self.numel].clone()
        return torch.empty(0, dtype=torch.float64, device="cpu") if self._landed is None else self._landed


@dataclass(slots=True)
class Dock:
    """Where the shipments of one device land: a ring of buffers that grows rather than wait for a free one."""

    transport: Transport
    _free: list[torch.Tensor] = field(default_factory=list)
    _under_way: list[Shipment] = field(default_factory=list)

    def send(self, vectors: Sequence[torch.Tensor]) -> Shipment:
        """Send vectors, float64 on the device, as one."""
        self.land()
        together = vectors[0] if len(vectors) == 1 else torch.cat(list(vectors))
        buffer = self._take(together.numel())
        self.transport.copy(together, buffer[: together.numel()])
        shipment = Shipment(self.transport.mark(), together.numel(), buffer)
        self._under_way.append(shipment)
        return shipment

    def land(self) -> None:
        """Free the buffers of what has arrived."""
        self._under_way, waiting = [], self._under_way
        for shipment in waiting:
            free = shipment.land()
            if free is None:
                self._under_way.append(shipment)
            else:
                self._free.append(free)

    def _take(self, numel: int) -> torch.Tensor:
        for at, buffer in enumerate(self._free):
            if buffer.numel() >= numel:
                return self._free.pop(at)
        return self.transport.buffer(max(_LEAST, 1 << (numel - 1).bit_length()) if numel else _LEAST)
