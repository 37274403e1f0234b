"""Which backward pass is running: one of a loss, or a call of autograd.grad that asks for something else.

A hook on an output fires in both. A gradient penalty, a saliency map or a score by autograd.grad says nothing about
what the loss sends back.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import torch


@dataclass(slots=True)
class PassKinds:
    """The passes that run, one inside the other where a custom backward starts another one."""

    _running: list[bool] = field(default_factory=list)  # for each: it is aside

    @property
    def aside(self) -> bool:
        """Return whether the innermost pass is none of a loss."""
        return bool(self._running) and self._running[-1]

    def begin(self, *, aside: bool) -> None:
        """Note that a pass begins."""
        if torch._C._current_graph_task_id() == -1:
            self._running.clear()  # an earlier one raised
        self._running.append(aside)

    def end(self) -> None:
        """Note that the innermost pass has run."""
        if self._running:
            self._running.pop()


def is_aside(asked: Sequence[torch.Tensor] | None, is_parameter: Callable[[torch.Tensor], bool]) -> bool:
    """Return whether a call of autograd.grad asks for no parameter; where that is not known, it may be of a loss."""
    return asked is not None and not any(is_parameter(tensor) for tensor in asked)
