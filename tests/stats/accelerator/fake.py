"""A device that takes its time: the CPU, with a queue of its own."""

from __future__ import annotations

import math

import torch

from whygrad.stats.accelerator.accelerators import Accelerators


class Mark:
    def __init__(self, device, position, patience):
        self.device, self.position, self.left = device, position, patience

    def is_reached(self):
        self.device.log.append("asked")
        self.left -= 1
        if self.left < 0:
            self.device.run(self.position)
        return self.position <= self.device.done

    def wait(self):
        self.device.log.append("waited")
        self.device.run(self.position)

    def seconds_since(self, earlier):
        assert earlier.position <= self.position <= self.device.done, "read before the device was there"
        return self.device.seconds


class Device:
    """Copies arrive only when a mark behind them has been asked for `patience` times, or was waited for."""

    def __init__(self, patience=2, seconds=0.0):
        self.patience, self.seconds = patience, seconds
        self.queue, self.done = [], 0
        self.log, self.buffers = [], []

    def buffer(self, numel):
        self.log.append("buffer")
        self.buffers.append(torch.full((numel,), math.nan, dtype=torch.float64))
        return self.buffers[-1]

    def copy(self, source, target):
        self.log.append("copied")
        assert source.dtype is torch.float64
        memory = target.untyped_storage().data_ptr()
        assert any(memory == b.untyped_storage().data_ptr() for b in self.buffers), "no memory that a device can write"
        target.fill_(math.nan)
        self.queue.append((source, target))

    def upload(self, numbers):
        return torch.tensor(numbers, dtype=torch.int64)

    def mark(self):
        return Mark(self, len(self.queue), self.patience)

    def run(self, position):
        for source, target in self.queue[self.done : position]:
            target.copy_(source)
        self.done = max(self.done, position)


class Transports:
    """Every tensor lies on the device."""

    def __init__(self, device=None):
        self.device, self.capturing = device or Device(), False

    def in_use(self):
        return True

    def is_capturing(self):
        return self.capturing

    def to(self, device):
        return self.device if device.type in ("cpu", "meta") else None


def accelerators(**options):
    transports = Transports(Device(**options))
    return Accelerators(transports), transports.device
