"""What modules returned since the last step, and which gradients came back to it."""

from __future__ import annotations

import weakref
from dataclasses import dataclass, field

import torch

from whygrad.model import Role
from whygrad.probe.recurrence import Recurrence
from whygrad.stats.rows import Rows


@dataclass(slots=True)
class Window:
    """What was seen since the last step."""

    expected: int = 0  # rows
    outputs: Rows = field(init=False)
    gradients: Rows = field(init=False)
    variations: Rows = field(default_factory=Rows)
    measured: dict[int, tuple[weakref.ref[torch.Tensor], int]] = field(default_factory=dict)
    views: dict[int, int] = field(default_factory=dict)  # output id -> gradients it waits for, of views
    called: set[int] = field(default_factory=set)
    again: Recurrence = field(default_factory=Recurrence)
    roots: dict[int, bool] = field(default_factory=dict)  # mode of the root models called since the last backward pass
    taught: dict[int, bool] = field(default_factory=dict)  # and of those called before it

    def __post_init__(self) -> None:
        self.outputs, self.gradients = Rows(self.expected), Rows(self.expected)

    def is_used(self) -> bool:
        """Return whether a module was called in it."""
        return bool(self.called or self.measured or self.roots)

    def rows(self) -> dict[Role, Rows]:
        """Return the rows that were measured in it."""
        roles = {
            Role.OUTPUT: self.outputs,
            Role.VARIATION: self.variations,
            Role.OUTPUT_GRADIENT: self.gradients,
            **self.again.rows(self.gradients),
        }
        return {role: rows for role, rows in roles.items() if rows.ids}
