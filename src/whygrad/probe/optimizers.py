"""The optimizers of the program: where they were made, what they hold, when they step, at which rate."""

from __future__ import annotations

import sys
import weakref
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from types import FrameType
from typing import TYPE_CHECKING, Any

import torch

from whygrad.model import Optimizer
from whygrad.probe.assignments import assigned_name
from whygrad.probe.modules import holder_name
from whygrad.probe.source import Site, UserCode, local_names, place_or_none, span

if TYPE_CHECKING:
    from whygrad.probe.gradient_norm import Norms
    from whygrad.probe.groups import GroupTable

MAX_RETIRED = 1000


@dataclass(slots=True)
class TrackedOptimizer:
    """One optimizer and its counts."""

    id: int
    ref: weakref.ref[torch.optim.Optimizer]
    type: str
    key: int = 0  # its identity, while it lives
    name: str = ""
    made: Site | None = None
    stepped: Site | None = None
    steps: int = 0
    backwards: int = 0  # since its last step
    backward_norms: Norms | None = None  # of its gradients after the last of them, where it is recorded
    is_changed: bool = True  # the gradients of its steps were not what backward had left, when that was last looked at
    zero_grads: int = 0
    skipped: int = 0
    parameters: int = 0
    is_plain: bool = True  # its last step had no closure, and no other step of it inside
    is_read: bool = False  # gradients and weights of the step that runs
    is_looked_up: bool | None = None  # its parameters are found and named; None: not decided yet
    depth: int = 0  # a step() that calls super().step() runs the hooks twice; only the outer one is a step
    learning_rates: tuple[float, ...] = ()
    last_learning_rates: tuple[float, ...] = ()
    zero_rate_steps: int = 0
    scheduler: str = ""
    scheduler_made: Site | None = None
    scheduler_stepped: Site | None = None
    scheduler_steps: int = 0

    def fact(self) -> Optimizer:
        """Return what the run file stores."""
        return Optimizer(
            id=self.id,
            name=self.name or self.type,
            type=self.type,
            made_at=place_or_none(self.made),
            stepped_at=place_or_none(self.stepped),
            steps=self.steps,
            zero_grads=self.zero_grads,
            skipped=self.skipped,
            parameters=self.parameters,
            learning_rates=self.learning_rates,
            last_learning_rates=self.last_learning_rates,
            zero_rate_steps=self.zero_rate_steps,
            scheduler=self.scheduler,
            scheduler_made_at=place_or_none(self.scheduler_made),
            scheduler_stepped_at=place_or_none(self.scheduler_stepped),
            scheduler_steps=self.scheduler_steps,
        )


@dataclass(slots=True)
class OptimizerTable:
    """Every optimizer met, by identity."""

    user: UserCode
    _by_id: dict[int, TrackedOptimizer] = field(default_factory=dict)
    _all: list[TrackedOptimizer] = field(default_factory=list)  # in order of first sight
    _alive: list[TrackedOptimizer] = field(default_factory=list)
    _count: int = 0

    def __iter__(self) -> Iterator[TrackedOptimizer]:
        return iter(self._all)

    def __len__(self) -> int:
        return self._count

    def alive(self) -> list[TrackedOptimizer]:
        """Return the entries whose optimizer may still exist."""
        return self._alive

    def retire(self) -> None:
        """Leave out the optimizers that are gone: programs make a new one for every round of training.

        What is known of them stays in memory up to a limit; beyond it, only in the run file.
        """
        self._alive = [entry for entry in self._alive if entry.ref() is not None]
        if len(self._all) - len(self._alive) > MAX_RETIRED:
            self._all = list(self._alive)
        self._by_id = {id(optimizer): entry for entry in self._alive if (optimizer := entry.ref()) is not None}

    def get(self, optimizer: torch.optim.Optimizer) -> TrackedOptimizer:
        """Return the entry of an optimizer, made on first sight."""
        entry = self._by_id.get(id(optimizer))
        if entry is None or entry.ref() is not optimizer:
            entry = TrackedOptimizer(self._count, weakref.ref(optimizer), type(optimizer).__name__, id(optimizer))
            self._count += 1
            self._by_id[id(optimizer)] = entry
            self._all.append(entry)
            self._alive.append(entry)
        return entry

    def note_made(self, optimizer: torch.optim.Optimizer, site: Site | None) -> TrackedOptimizer:
        """Remember a freshly constructed optimizer."""
        entry = self.get(optimizer)
        entry.made = entry.made or site
        if site is not None and not entry.name:
            entry.name = assigned_name(site.code.co_filename, span(site)[0])
        entry.learning_rates = entry.learning_rates or learning_rates(optimizer)
        entry.last_learning_rates = entry.last_learning_rates or entry.learning_rates
        return entry

    def name(self, optimizer: torch.optim.Optimizer) -> None:
        """Find the variable that holds an optimizer, from the code that is running."""
        entry = self.get(optimizer)
        entry.name = holder_name(optimizer, self.user) or entry.name


_STEP_FILE = torch.optim.Optimizer.profile_hook_step.__code__.co_filename  # of the frames that run `step`


def is_within_own_step(optimizer: torch.optim.Optimizer) -> bool:
    """Return whether the step of an optimizer that begins was called by another step of it."""
    running = 0
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        code = frame.f_code
        if code.co_name == "wrapper" and code.co_filename == _STEP_FILE:
            running += local_names(frame).get("self") is optimizer
        frame = frame.f_back
    return running > 1


def held_tensors(optimizer: torch.optim.Optimizer) -> list[torch.Tensor]:
    """Return the tensors of all groups, in order."""
    return [tensor for group in optimizer.param_groups for tensor in group["params"]]


def learning_rates(optimizer: torch.optim.Optimizer) -> tuple[float, ...]:
    """Return the learning rate of each group; a rate kept in a tensor on an accelerator is not read (it would wait)."""
    return rates_of(group.get("lr") for group in optimizer.param_groups)


def rates_of(rates: Iterable[Any]) -> tuple[float, ...]:
    """Return learning rates as numbers: NaN for one that is none, or that an accelerator would have to tell."""
    return tuple(
        float(rate)
        if isinstance(rate, int | float) or (isinstance(rate, torch.Tensor) and rate.device.type == "cpu")
        else float("nan")
        for rate in rates
    )


def note_rates(
    groups: GroupTable, optimizer: torch.optim.Optimizer | None, tracked: TrackedOptimizer, steps: int = 1
) -> None:
    """Count steps, the last of them at the present rates of an optimizer; None: at the last known ones."""
    before = tracked.last_learning_rates
    if optimizer is not None:
        tracked.last_learning_rates = learning_rates(optimizer)
    unchanged = before == tracked.last_learning_rates
    tracked.zero_rate_steps += (steps if unchanged else 1) * all(rate == 0 for rate in tracked.last_learning_rates)
    groups.note_step(optimizer, tracked, steps)
