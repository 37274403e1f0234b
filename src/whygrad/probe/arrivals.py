"""What recorded steps measured, on its way to the backlog: at once, or from an accelerator some steps later."""

# R = rows, S = statistics, T = tensors

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from whygrad.model import Role, Step
from whygrad.probe.backlog import Backlog
from whygrad.probe.guard import Guard
from whygrad.stats.accelerator.accelerators import Accelerators
from whygrad.stats.pending import Pending


class _Matrix(NamedTuple):
    """One role at one step."""

    step: int
    role: Role
    ids: Sequence[int]
    pending: Pending


@dataclass(slots=True)
class Arrivals:
    """Passes on in the order of the steps, each step behind what was measured in it; one per session."""

    backlog: Backlog
    guard: Guard  # told what accelerators took
    accelerators: Accelerators = field(default_factory=Accelerators)
    _queue: deque[_Matrix | Step] = field(default_factory=deque)

    def add(self, step: int, role: Role, ids: Sequence[int], pending: Pending) -> None:
        """Add the statistics of one role at one step.

        Args:
            step: Number of the step.
            role: What the statistics describe.
            ids: Id of each row, [R].
            pending: Of which every row was measured.
        """
        self._put(_Matrix(step, role, ids, pending))

    def add_step(self, step: Step) -> None:
        """Add a step that is over, send what accelerators found in it, and pass on what has arrived by now."""
        self.accelerators.send()
        self._put(step)
        self._pass_on(wait=False)

    def finish(self) -> None:
        """Pass on everything, and wait for what has not arrived: at the end of the run."""
        try:
            self._pass_on(wait=True)
        finally:  # a device that has failed sends nothing more; which steps there were is known all the same
            steps = [each for each in self._queue if isinstance(each, Step)]
            self._queue.clear()
            for step in steps:
                self.backlog.add_step(step)

    def _put(self, each: _Matrix | Step) -> None:
        if self._queue:
            self._queue.append(each)
        elif isinstance(each, Step) or each.pending.is_ready():
            self._hand_over(each)
        else:
            self._queue.append(each)

    def _pass_on(self, *, wait: bool) -> None:
        while self._queue:
            first = self._queue[0]
            if not wait and not isinstance(first, Step) and not first.pending.is_ready():
                return
            self._hand_over(self._queue.popleft())

    def _hand_over(self, each: _Matrix | Step) -> None:
        if isinstance(each, Step):
            self.backlog.add_step(each)
            return
        before_s = self.accelerators.excess_s
        found = each.pending.read()
        self.guard.own_s += self.accelerators.excess_s - before_s
        self.backlog.add(each.step, each.role, each.ids, found.matrix, found.histograms)
