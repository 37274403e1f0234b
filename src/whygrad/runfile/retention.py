"""What a run file lets go of: the statistics of old recorded steps first, then what else is known of old steps."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from whygrad.model import Activation, Step, Total
from whygrad.runfile.thinning import Thinner

# Every reader opens all steps, at 4 microseconds each; a curve of 2000 evenly spread points is left of 10 million.
MOST_STEPS = 2**15
MOST_RECORDED = 2**13
_FEWEST_STEPS = 1024  # however little room there is: 50 KB
_DENSE_STEPS = 1024  # at the start, where most faults show
_DENSE_RECORDED = 128
_MOST_MARKS = 8  # of each kind
_PEAK = 4.0  # times the largest gradient so far
_MOST_OPTIMIZERS = 10_000


class Gone(NamedTuple):
    """Numbers of steps."""

    rows: list[int]  # of which nothing stays
    recorded: list[int]  # of which the statistics go


@dataclass(slots=True)
class Turns:
    """Numbers each optimizer's steps from 0; programs make optimizers for ever, so the idlest are forgotten."""

    _next: dict[int | None, int] = field(default_factory=dict)  # the idlest first

    def take(self, optimizer: int | None, known: int | None = None) -> int:
        """Return the number of this step of an optimizer; None: of a step by hand.

        Args:
            optimizer: Its id.
            known: The number, where the caller knows it: not every step is handed over.
        """
        turn = self._next.pop(optimizer, 0)
        turn = turn if known is None else known
        self._next[optimizer] = turn + 1
        if len(self._next) > _MOST_OPTIMIZERS:
            del self._next[next(iter(self._next))]
        return turn


class Retention:
    """Chooses for one run file. What was chosen is `unsettled` until it is out of the file.

    The row of a step stays while its statistics do, and while a look at a squashing function refers to it.
    """

    def __init__(self, most_steps: int = MOST_STEPS, most_recorded: int = MOST_RECORDED) -> None:
        self.unsettled = Gone([], [])
        self._rows = Thinner(most_steps, min(_DENSE_STEPS, most_steps // 8))
        self._recorded = Thinner(most_recorded, min(_DENSE_RECORDED, most_recorded // 8))
        self._turns = Turns()  # of recorded steps
        self._held: set[int] = set()  # recorded steps that are kept
        self._overdue: set[int] = set()  # steps that something still refers to
        self._looks: dict[int, tuple[int, ...]] = {}  # of each activation
        self._broken: set[int] = set()
        self._peaks = 0
        self._largest = 0.0  # norm of a step's gradients
        self._last = -1

    def note(self, steps: Iterable[Step], totals: Iterable[Total], activations: Iterable[Activation]) -> None:
        """Take in what is about to be written; what was taken in before is passed over."""
        for step in steps:
            if step.id > self._last:
                self._last = step.id
                self._add(step)
        for total in totals:
            if total.first_nonfinite_step is not None:
                self._note_broken(total.first_nonfinite_step)
        self._looks.update((activation.id, activation.steps) for activation in activations)

    def choose(self, *, narrower: bool = False) -> Gone | None:
        """Return what is to go now; None if more is asked for and nothing is left.

        Args:
            narrower: The file is too large: let go of more than the numbers of steps ask for.
        """
        if narrower and not self._recorded and len(self._rows) <= _FEWEST_STEPS:
            return None
        has_recorded = len(self._recorded) > 0
        recorded = self._recorded.expire(narrower=narrower and has_recorded)
        self._held.difference_update(recorded)
        self._overdue.update(self._rows.expire(narrower=narrower and not has_recorded))
        rows = self._without_use()
        self._overdue.difference_update(rows)
        self.unsettled.rows.extend(rows)
        self.unsettled.recorded.extend(recorded)
        return Gone(rows, recorded)

    def settle(self) -> None:
        """What was chosen is out of the file."""
        self.unsettled = Gone([], [])

    def _add(self, step: Step) -> None:
        key = step.optimizer or 0  # added to the turn, so that of many short-lived optimizers not all first steps stay
        self._rows.add(step.id, (step.position or 0) + key)
        if step.recorded:
            self._recorded.add(step.id, self._turns.take(step.optimizer) + key)
            self._held.add(step.id)
        if step.loss is not None and not math.isfinite(step.loss):
            self._note_broken(step.id)
        if step.gradient_l2 is not None and math.isfinite(step.gradient_l2):
            self._note_size(step)

    def _note_size(self, step: Step) -> None:
        size = step.gradient_l2 or 0.0
        if size > _PEAK * self._largest and not self._recorded.is_dense and self._peaks < _MOST_MARKS:
            self._peaks += 1
            self._mark(step.id)
        self._largest = max(self._largest, size)

    def _note_broken(self, step: int) -> None:
        if step not in self._broken and len(self._broken) < _MOST_MARKS:
            self._broken.add(step)
            self._mark(step)

    def _mark(self, step: int) -> None:
        self._rows.mark(step)
        self._recorded.mark(step)

    def _without_use(self) -> list[int]:
        if not self._overdue:
            return []
        looked_at = {step for steps in self._looks.values() for step in steps}
        return [step for step in self._overdue if step not in self._held and step not in looked_at]
