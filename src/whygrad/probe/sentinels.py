"""A few tensors of an optimizer, from which to tell cheaply what happened to its gradients.

A gradient that autograd adds to, that is clipped, unscaled or set to zero in place has a new version; one that was
dropped is None; one that was replaced is another object. Looking at a handful of tensors costs a microsecond or two,
whatever the size of the model.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import torch

from whygrad.probe.optimizers import held_tensors
from whygrad.probe.outputs import version_of
from whygrad.probe.parameters import ParameterTable, Tracked
from whygrad.stats.addresses import has_nonzero_bytes
from whygrad.stats.kernel import is_supported, sample_view

MOST = 4  # tensors of an optimizer
_ELEMENTS = 256  # of a gradient that are looked at

Stamp = tuple[int, int] | None  # (identity, version) of a gradient; None: there is none


@dataclass(slots=True)
class Sentinels:
    """The chosen tensors of one optimizer."""

    _entries: list[Tracked] = field(default_factory=list)
    _held: int = -1  # tensors the optimizer held when these were chosen

    def choose(self, optimizer: torch.optim.Optimizer, known: ParameterTable) -> None:
        """Choose tensors, evenly spread, if the optimizer holds others than at the last choice."""
        held = sum(len(group["params"]) for group in optimizer.param_groups)
        if held != self._held or any(entry.ref() is None for entry in self._entries):
            self._held = held
            learning = (tensor for tensor in held_tensors(optimizer) if tensor.requires_grad)
            self.take([entry for tensor in learning if (entry := known.get(tensor)) is not None])

    def take(self, entries: Sequence[Tracked]) -> None:
        """Look at these from now on, or at a few of them."""
        last = len(entries) - 1
        few = entries if last < MOST else [entries[round(i * last / (MOST - 1))] for i in range(MOST)]
        self._entries = list(few)

    def tensors(self) -> list[torch.Tensor]:
        """Return the chosen tensors that still exist."""
        return [tensor for entry in self._entries if (tensor := entry.ref()) is not None]

    def stamps(self) -> tuple[Stamp, ...]:
        """Return what tells one state of the gradients from another."""
        return tuple([_stamp(tensor.grad) for entry in self._entries if (tensor := entry.ref()) is not None])

    def versions(self) -> tuple[int, ...]:
        """Return what tells one state of the values from another."""
        return tuple(version_of(tensor) for tensor in self.tensors())

    def are_zero(self) -> bool:
        """Return whether there is no gradient but zeros, as far as a look that makes nobody wait can tell."""
        return all(_is_zero(tensor.grad) for tensor in self.tensors() if tensor.grad is not None)


def are_gone(stamps: Iterable[Stamp]) -> bool:
    """Return whether no gradient is there."""
    return all(stamp is None for stamp in stamps)


def _stamp(gradient: torch.Tensor | None) -> Stamp:
    if gradient is None:
        return None
    try:
        return id(gradient), gradient._version
    except RuntimeError:  # inference tensors keep none
        return id(gradient), -1


def _is_zero(gradient: torch.Tensor) -> bool:
    if has_nonzero_bytes(gradient):  # the rule, and quick to see
        return False
    if gradient.layout is not torch.strided or gradient.device.type != "cpu" or not is_supported(gradient):
        return False
    return not bool(sample_view(gradient, _ELEMENTS).any())
