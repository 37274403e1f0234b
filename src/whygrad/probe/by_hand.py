"""Updates by hand in a program that has optimizers too: what a pass reaches moves, and none of them holds it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import torch

from whygrad.probe.outputs import version_of
from whygrad.probe.parameters import Tracked
from whygrad.probe.source import Site
from whygrad.stats.kernel import is_supported, sample_view

_ELEMENTS = 64  # of a tensor that are compared
_KEPT = 10_000  # tensors


@dataclass(slots=True)
class ByHand:
    """Which lines call backward for an update by hand."""

    _values: dict[int, tuple[int, torch.Tensor | None]] = field(default_factory=dict)  # id of an entry -> value
    _lines: set[Site | None] = field(default_factory=set)
    _moved: bool = False

    def look(self, reached: Iterable[Tracked]) -> None:
        """Look whether what the pass that is about to run reaches has moved since the last such pass."""
        entries = list(reached)
        self._moved = False
        if any(entry.optimizers for entry in entries):
            return
        if len(self._values) > _KEPT:
            self._values.clear()
        for entry in entries:
            tensor = entry.ref()
            if tensor is not None:
                now = _value(tensor)
                self._moved |= _differs(self._values.get(entry.id, now), now)
                self._values[entry.id] = now

    def is_step(self, site: Site | None) -> bool:
        """Return whether a pass that was called here, and has run, is one of a loop that updates by hand."""
        if self._moved:
            self._lines.add(site)
            self._moved = False
        return site in self._lines


def _value(tensor: torch.Tensor) -> tuple[int, torch.Tensor | None]:
    at_hand = tensor.device.type == "cpu" and is_supported(tensor)  # comparing would wait for an accelerator
    return version_of(tensor), sample_view(tensor.detach(), _ELEMENTS).clone() if at_hand else None


def _differs(before: tuple[int, torch.Tensor | None], now: tuple[int, torch.Tensor | None]) -> bool:
    (version, sample), (new_version, new_sample) = before, now
    if version != new_version:
        return True
    return sample is not None and new_sample is not None and not torch.equal(sample, new_sample)
