"""What is counted of every parameter at every step, though hardly anything changes from one step to the next.

A step compares what it finds with what the step before it found, a list at a time. Where all is as it was, one number
goes up; the parameters' own counts are brought up to date when something changes, or when somebody asks (`settle`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from operator import attrgetter, is_

import torch

from whygrad.probe.outputs import version_of
from whygrad.probe.parameters import ParameterTable, Tracked

_version: Callable[[torch.Tensor], int] = attrgetter("_version")
_requires_grad: Callable[[torch.Tensor], bool] = attrgetter("requires_grad")


@dataclass(slots=True)
class _Course:
    """The tensors that the steps of one optimizer count, and what the last of them found."""

    held: list[Tracked]  # in the order in which the optimizer holds them
    others: list[Tracked]  # that no optimizer holds
    state: tuple[int, int]  # of the table, see `ParameterTable.state`
    learning: list[bool] = field(default_factory=list)  # requires_grad
    missing: list[bool] = field(default_factory=list)  # the gradient is None
    waiting: int = 0  # steps that are not in the parameters' counts yet
    first: int = 0  # of them
    last: int = 0

    def fits(self, table: ParameterTable, held: Sequence[torch.Tensor]) -> list[torch.Tensor] | None:
        """Return the tensors of `held` and `others`; None if these are no longer the ones to count."""
        if self.state != table.state() or len(held) != len(self.held):
            return None
        if not all(map(is_, (entry.ref() for entry in self.held), held)):
            return None
        others = [tensor for entry in self.others if (tensor := entry.ref()) is not None]
        return [*held, *others] if len(others) == len(self.others) else None

    def entries(self) -> list[Tracked]:
        """Return what is counted."""
        return [*self.held, *self.others]

    def settle(self) -> bool:
        """Bring the parameters' counts up to date; return whether one has lost the gradient that it had."""
        steps, self.waiting = self.waiting, 0
        if not steps:
            return False
        lost = False
        found = zip(self.entries(), self.learning, self.missing, strict=True)
        once = {entry.id: (entry, learning, missing) for entry, learning, missing in found}  # a group may repeat one
        for entry, learning, missing in once.values():
            entry.steps += steps
            entry.requires_grad = learning
            if not learning:
                entry.frozen_steps += steps
            if not missing:
                entry.gradient_steps += steps
                entry.last_gradient_step = self.last
                if entry.first_gradient_step is None:
                    entry.first_gradient_step = self.first
            elif entry.gradient_steps and not entry.lost:
                entry.lost = lost = True
        return lost


@dataclass(slots=True)
class Counts:
    """The counts of one session."""

    table: ParameterTable
    _courses: dict[int, _Course] = field(default_factory=dict)  # by optimizer; -1: steps without one

    def known(self, optimizer: int, held: Sequence[torch.Tensor]) -> list[torch.Tensor] | None:
        """Return the tensors to count, for `count`; None if they are not those of the last step.

        Args:
            optimizer: Its number; -1 for steps without one.
            held: The tensors of the optimizer.
        """
        course = self._courses.get(optimizer)
        return None if course is None else course.fits(self.table, held)

    def count(
        self, optimizer: int, step: int, held: Sequence[torch.Tensor], known: list[torch.Tensor] | None = None
    ) -> bool:
        """Count a step that is about to be made.

        Args:
            optimizer: Its number; -1 for a step without one.
            step: Number of the step.
            held: The tensors of the optimizer, which must all be in the table.
            known: What `known` returned.

        Returns:
            Whether a parameter has lost the gradient that it had before.
        """
        lost = False
        if known is None:
            lost = self.settle(optimizer)
            self._courses[optimizer] = self._begin(held)
        course = self._courses[optimizer]
        tensors = known or [tensor for entry in course.entries() if (tensor := entry.ref()) is not None]
        learning = list(map(_requires_grad, tensors))
        missing = [tensor.grad is None for tensor in tensors]
        _compare_versions(course.entries(), tensors)
        same = learning == course.learning and missing == course.missing
        if not same:
            lost |= course.settle()
            course.learning, course.missing = learning, missing
        if not course.waiting:
            course.first = step
        course.waiting += 1
        course.last = step
        return lost if same else course.settle() or lost

    def pass_over(self, optimizer: int, steps: int, *, first: int, last: int) -> None:
        """Count `steps` steps, from number `first` to number `last`, as ones in which all was as in the step before."""
        course = self._courses.get(optimizer)
        if course is not None and steps:
            course.first = course.first if course.waiting else first
            course.waiting += steps
            course.last = last
            for entry in course.entries():
                entry.version = None  # what the last of them left was not looked at

    def note_step(self, optimizer: int, held: Sequence[torch.Tensor]) -> None:
        """Take note of the versions that a step left."""
        course = self._courses.get(optimizer)
        if course is not None and len(course.held) == len(held):
            for entry, version in zip(course.held, _versions(held), strict=True):
                entry.version = version

    def settle(self, optimizer: int | None = None) -> bool:
        """Bring the parameters' counts up to date, of one optimizer or of all."""
        chosen = self._courses.values() if optimizer is None else filter(None, (self._courses.get(optimizer),))
        lost = [course.settle() for course in chosen]
        return any(lost)

    def forget(self, optimizers: Iterable[int]) -> None:
        """Leave out all optimizers but these."""
        self.settle()
        kept = {*optimizers, -1}
        self._courses = {number: course for number, course in self._courses.items() if number in kept}

    def _begin(self, held: Sequence[torch.Tensor]) -> _Course:
        entries = [entry for tensor in held if (entry := self.table.get(tensor)) is not None]
        others = [e for e in self.table.alive() if not e.optimizers and e.ref() is not None]
        return _Course(entries, others, self.table.state())


def _versions(tensors: Sequence[torch.Tensor]) -> list[int]:
    try:
        return list(map(_version, tensors))
    except RuntimeError:  # inference tensors keep none
        return list(map(version_of, tensors))


def _compare_versions(entries: Sequence[Tracked], tensors: Sequence[torch.Tensor]) -> None:
    """Count the tensors that something has written since a step of theirs."""
    now = _versions(tensors)
    if now == [entry.version for entry in entries]:
        return
    for entry, version in zip(entries, now, strict=True):
        entry.changed_outside += entry.version is not None and version != entry.version
        entry.version = version
