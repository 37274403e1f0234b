"""Which parameters an optimizer holds, and what they are called in the program's models."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import torch

from whygrad.probe.facts import resolve
from whygrad.probe.gradient_hooks import note_hooks
from whygrad.probe.optimizers import TrackedOptimizer
from whygrad.probe.variables import variable_name

if TYPE_CHECKING:
    from whygrad.probe.session import Session

MOST_FREE = 64  # optimizers whose parameters are looked up whatever that costs
SHARE = 0.5  # of the budget, for those that come after
MAX_HOLDERS = 64  # optimizers of one parameter that are remembered: each round of training may make a new one

_clock = time.perf_counter


class Lookups:
    """Looks them up, within a share of the budget: some programs make an optimizer for every task."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._spent_s = 0.0

    def wants(self, tracked: TrackedOptimizer) -> bool:
        """Return whether the parameters of an optimizer are looked up."""
        session = self._session
        if tracked.is_looked_up is None:
            allowed = SHARE * session.options.overhead * (_clock() - session.began)
            tracked.is_looked_up = tracked.id < MOST_FREE or self._spent_s <= allowed
            if not tracked.is_looked_up:
                session.note("the program makes optimizers again and again: not all of the later ones were followed")
        return tracked.is_looked_up

    def look(self, held: list[torch.Tensor], tracked: TrackedOptimizer) -> None:
        """Find and name what an optimizer holds, and everything else that models hold now."""
        session = self._session
        began = _clock()
        self.link(held, tracked)
        resolve(session, judge_stale=True)
        session.copies.link()
        session.guard.run("gradient hooks", note_hooks, session)
        self._spent_s += _clock() - began

    def link(self, held: list[torch.Tensor], tracked: TrackedOptimizer) -> None:
        """Take note that an optimizer holds some tensors."""
        parameters = self._session.parameters
        for tensor in held:
            entry = parameters.add(tensor)
            if not entry.attribute and entry.is_nameless:
                entry.attribute = variable_name(tensor, self._session.user)
            if tracked.id not in entry.optimizers:
                entry.optimizers = [*entry.optimizers[-MAX_HOLDERS:], tracked.id]
                parameters.links += 1
        optimizer = tracked.ref()
        if optimizer is not None:
            self._session.groups.note_members(optimizer, tracked, self._number)

    def _number(self, tensor: torch.Tensor) -> int | None:
        entry = self._session.parameters.get(tensor)
        return None if entry is None else entry.id
