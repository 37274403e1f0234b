"""Measuring tensors wherever they lie: those of the CPU at once, those of an accelerator without waiting for it."""

# R = rows, S = statistics, T = tensors

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from importlib import import_module
from types import ModuleType

import torch

from whygrad.stats.accelerator.cargo import Cargo, Launched, Reduction, Stacked
from whygrad.stats.accelerator.plan import Sampler, reduce
from whygrad.stats.accelerator.shipment import Dock
from whygrad.stats.accelerator.transport import CudaTransports, Transports
from whygrad.stats.kernel import Measured, measure
from whygrad.stats.library import SWITCH
from whygrad.stats.pending import Pending, Settled
from whygrad.stats.support import local_tensor, refusal, untracked

CAPTURED = "tensors of a CUDA graph that is being recorded are not measured"
NOTHING = torch.empty(0, device="cpu")  # in the place of a tensor that lies elsewhere: its row is zeros

_clock = time.perf_counter  # bound here: programs mock `time`


@dataclass(slots=True)
class Accelerators:
    """All devices that are measured without waiting for them; one per session.

    Everything is launched on the stream that is the device's current one. At an optimizer's step all streams of the
    backward pass have been joined with it, or the step itself would read gradients that are not there.
    """

    transports: Transports = field(default_factory=CudaTransports)
    sampler: Sampler = field(default_factory=Sampler)
    excess_s: float = 0.0  # what devices took for all that was read, beyond the host's time for launching it
    _docks: dict[torch.device, Dock] = field(default_factory=dict)
    _unsent: dict[torch.device, list[Cargo]] = field(default_factory=dict)

    @untracked
    def begin(self, tensors: Sequence[torch.Tensor], *, histograms: bool = False) -> Pending:
        """Measure tensors as `kernel.measure` does, without waiting for those that lie on an accelerator.

        Sparse ones are the exception: torch waits for the device to add up indices that repeat.
        """
        away = self.away(tensors)
        if not away:
            return Settled(measure(tensors, histograms=histograms))
        launched = self.launched(measure(without(tensors, away), histograms=histograms))
        for device, indexes in away.items():
            kept = self.accepted(tensors, indexes, launched.refused)
            parts = [local_tensor(tensors[index]) for index in kept]
            if parts:
                launched.cargo.append(self.launch(device, kept, self._work(device, parts, histograms=histograms)))
        return launched

    @untracked
    def begin_rows(self, matrix: torch.Tensor, elsewhere: Mapping[int, torch.Tensor]) -> Pending:
        """Gather rows of statistics that were measured one by one, as those of what modules return.

        Args:
            matrix: float64 [R, S] on the CPU; it is written to.
            elsewhere: The rows that are not in it, [S] each, by index, on any device.
        """
        indexes = list(elsewhere)
        away = self.away(elsewhere.values())
        launched = self.launched(Measured(matrix, None, {}))
        there: set[int] = set()
        for device, places in away.items():
            rows = [indexes[place] for place in places]
            there.update(rows)
            if self.transports.is_capturing():
                matrix[rows] = 0.0
            else:
                gathering = partial(_gathered, [elsewhere[row] for row in rows])
                launched.cargo.append(self.launch(device, rows, gathering))
        for index, row in elsewhere.items():
            if index not in there:
                matrix[index] = row.to("cpu", torch.float64)
        return launched

    @untracked
    def send(self) -> None:
        """Send what was launched since the last time, in one copy for each device: once a recorded step."""
        if not self._unsent or self.transports.is_capturing():
            return
        unsent, self._unsent = self._unsent, {}
        for device, cargo in unsent.items():
            shipment = self._docks[device].send([each.vector for each in cargo if each.vector is not None])
            offset = 0
            for each in cargo:
                each.shipment, each.offset, each.vector = shipment, offset, None
                offset += each.reading.numel

    # -- for what measures in other ways ------------------------------------------------------------------------------

    def away(self, tensors: Iterable[torch.Tensor]) -> dict[torch.device, list[int]]:
        """Return the indexes of the tensors that lie on an accelerator, by device."""
        found: dict[torch.device, list[int]] = {}
        if self.transports.in_use():
            for index, tensor in enumerate(tensors):
                if self.transports.to(tensor.device) is not None:
                    found.setdefault(tensor.device, []).append(index)
        return found

    def accepted(self, tensors: Sequence[torch.Tensor], indexes: Iterable[int], refused: dict[int, str]) -> list[int]:
        """Return the indexes of the tensors that can be measured, and note in `refused` why others cannot."""
        captured = self.transports.is_capturing()
        kept = []
        for index in indexes:
            why = CAPTURED if captured else refusal(tensors[index])
            if why is None:
                kept.append(index)
            else:
                refused[index] = why
        return kept

    def launched(self, home: Measured) -> Launched:
        """Return what is pending, to which cargo is added."""
        return Launched(home, self._may_ask, self.send, self._note_excess)

    def launch(self, device: torch.device, rows: list[int], work: Callable[[], Reduction]) -> Cargo:
        """Queue work on a device, and keep what comes of it until the next `send`.

        Raises:
            LookupError: The device is not one of `away`.
        """
        transport = self.transports.to(device)
        if transport is None:
            raise LookupError(device)
        if device not in self._docks:
            self._docks[device] = Dock(transport)
        start, began = _clock(), transport.mark()
        vector, reading = work()
        ended = transport.mark()
        cargo = Cargo(rows, reading, vector, began, ended, _clock() - start)
        self._unsent.setdefault(device, []).append(cargo)
        return cargo

    def _work(
        self, device: torch.device, parts: Sequence[torch.Tensor], *, histograms: bool
    ) -> Callable[[], Reduction]:
        kernel, transport = one_pass(), self.transports.to(device)
        if kernel is not None and transport is not None and kernel.can_read(parts):
            return partial(kernel.reduce_in_one_pass, parts, transport.upload, histograms=histograms)
        return partial(reduce, parts, self.sampler, histograms=histograms)

    def _may_ask(self) -> bool:
        return not self.transports.is_capturing()

    def _note_excess(self, seconds: float) -> None:
        self.excess_s += seconds


@cache
def one_pass() -> ModuleType | None:
    """Return the module of the kernel in Triton, where `WHYGRAD_KERNEL=triton` asks for it and Triton is there."""
    if os.environ.get(SWITCH) != "triton":
        return None
    try:
        return import_module("whygrad.stats.accelerator.one_pass")
    except ImportError:
        return None


def without(tensors: Sequence[torch.Tensor], away: dict[torch.device, list[int]]) -> list[torch.Tensor]:
    """Return the tensors with nothing in the place of those that lie elsewhere."""
    elsewhere = {index for indexes in away.values() for index in indexes}
    return [NOTHING if index in elsewhere else tensor for index, tensor in enumerate(tensors)]


def _gathered(rows: Sequence[torch.Tensor]) -> Reduction:
    return Reduction(torch.stack(list(rows)).double().view(-1), Stacked(len(rows)))
