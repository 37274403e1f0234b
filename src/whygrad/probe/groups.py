"""The parameter groups of optimizers: what each holds, at which rates it steps, and who sets them."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch

from whygrad.model import Group, Place
from whygrad.probe.optimizers import TrackedOptimizer
from whygrad.probe.source import Site, line_place, syntax_tree

MAX_GROUPS = 2000  # a program that makes optimizers for ever
_NAMED_DECOUPLED = ("W", "Lion", "Lamb")  # how the names of optimizers with decoupled decay end


@dataclass(slots=True)
class TrackedGroup:
    """One group and its rates."""

    id: int
    optimizer: int
    position: int
    made: float
    first: float = math.nan
    last: float = math.nan
    lowest: float = math.nan
    highest: float = math.nan
    steps: int = 0
    zero_steps: int = 0
    rises: int = 0  # steps at which the rate was above that of the step before
    settings: dict[str, Any] = field(default_factory=dict)
    members: tuple[int, ...] = ()

    def note_rate(self, rate: float, steps: int = 1) -> None:
        """Count steps, the last of them at a rate."""
        if not self.steps:
            self.first = self.lowest = self.highest = rate
        unchanged = rate == self.last
        self.rises += rate > self.last
        self.last = rate
        self.lowest, self.highest = min(self.lowest, rate), max(self.highest, rate)
        self.steps += steps
        self.zero_steps += (steps if unchanged else 1) * (rate == 0)


@dataclass(slots=True)
class GroupTable:
    """Every group met, by its optimizer and position."""

    _all: dict[tuple[int, int], TrackedGroup] = field(default_factory=dict)

    def note_members(
        self, optimizer: torch.optim.Optimizer, tracked: TrackedOptimizer, number: Callable[[torch.Tensor], int | None]
    ) -> None:
        """Remember what each group of an optimizer holds, and how it is set; `number` gives a tensor its id."""
        for position, given in enumerate(optimizer.param_groups):
            group = self._group(tracked, position, given)
            if group is not None:
                known = (number(tensor) for tensor in given["params"])
                group.members = tuple(key for key in known if key is not None)
                group.settings = _settings(optimizer, given)

    def note_step(self, optimizer: torch.optim.Optimizer | None, tracked: TrackedOptimizer, steps: int = 1) -> None:
        """Count the rates of a step that was made, or of several; the optimizer may be gone by now."""
        for position, rate in enumerate(tracked.last_learning_rates):
            group = self._all.get((tracked.id, position))
            if group is None and optimizer is not None:
                group = self._group(tracked, position, optimizer.param_groups[position])
            if group is not None:
                group.note_rate(rate, steps)

    def facts(self, optimizers: Iterable[TrackedOptimizer]) -> Iterator[Group]:
        """Yield what the run file stores."""
        by_id = {optimizer.id: optimizer for optimizer in optimizers}
        for group in self._all.values():
            optimizer = by_id.get(group.optimizer)
            changed = group.steps and not group.lowest == group.highest == group.made
            by_hand = optimizer is not None and changed and not optimizer.scheduler_steps
            yield Group(
                id=group.id,
                optimizer=group.optimizer,
                position=group.position,
                parameters=group.members,
                learning_rate=group.made,
                first_learning_rate=group.first,
                last_learning_rate=group.last,
                lowest_learning_rate=group.lowest,
                highest_learning_rate=group.highest,
                steps=group.steps,
                zero_rate_steps=group.zero_steps,
                rises=group.rises,
                rate_set_at=rate_line(optimizer) if optimizer is not None and by_hand else None,
                **group.settings,
            )

    def _group(self, tracked: TrackedOptimizer, position: int, given: dict[str, Any]) -> TrackedGroup | None:
        key = tracked.id, position
        if key not in self._all:
            if len(self._all) >= MAX_GROUPS:
                return None
            rates = tracked.learning_rates
            made = rates[position] if position < len(rates) else _number(given.get("lr"))
            self._all[key] = TrackedGroup(len(self._all), *key, made)
        return self._all[key]


def _settings(optimizer: torch.optim.Optimizer, group: dict[str, Any]) -> dict[str, Any]:
    betas = group.get("betas")
    momentum = betas[0] if isinstance(betas, tuple | list) and betas else group.get("momentum")
    named = type(optimizer).__name__.endswith(_NAMED_DECOUPLED)
    return {
        "base_learning_rate": _number(group.get("max_lr", group.get("initial_lr"))),
        "weight_decay": _number(group.get("weight_decay", 0.0)),
        "decoupled": bool(group.get("decoupled_weight_decay", named)),
        "momentum": _number(momentum),
        "eps": _number(group.get("eps")),
    }


def _number(value: object) -> float:
    """Return a setting as a number; NaN where there is none, or where reading it would wait for an accelerator."""
    if isinstance(value, torch.Tensor):
        return float(value) if value.device.type == "cpu" and value.numel() == 1 else math.nan
    return float(value) if isinstance(value, int | float) else math.nan


def rate_line(optimizer: TrackedOptimizer) -> Place | None:
    """Return the line that sets `group["lr"]` in the files that make or step an optimizer; None if there is none."""
    known: Iterable[Site | None] = (optimizer.stepped, optimizer.made)
    for file in dict.fromkeys(site.code.co_filename for site in known if site is not None):
        tree = syntax_tree(file)
        lines = [node.lineno for node in ast.walk(tree) if _sets_rate(node)] if tree is not None else []  # type: ignore[attr-defined]
        if lines:
            return line_place(file, max(lines))
    return None


def _sets_rate(node: ast.AST) -> bool:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AugAssign) else []
    return any(
        isinstance(target, ast.Subscript) and isinstance(target.slice, ast.Constant) and target.slice.value == "lr"
        for target in targets
    )
