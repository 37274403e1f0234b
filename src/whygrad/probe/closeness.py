"""Which recorded steps are looked at closely: call by call, node by node, value by value.

Statistics change from step to step and are taken at every recorded step. What tensors flow where, what is fed, who
clips and who overwrites is the same again and again: it is looked at in the first recorded steps, in some of the later
ones, and as soon as the numbers leave their course.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass, field
from statistics import median

FIRST = 100  # recorded steps, all looked at closely
FEWEST = 10  # of them, where a look is dear
FIRST_S = 3.0  # of our own time; the others of the first ones are looked at while less was spent
OFTEN = 3  # one of those after, where the budget decides how many there are; odd, for optimizers take turns
EVERY = 17  # likewise, up to MANY, where the user does
MANY = 1000
LATER = 67  # likewise, after that
ALARMED = 20  # steps that are looked at closely after a number left its course
MAX_ALARMS = 50  # losses of some programs leap for ever
_LEAP = 10.0  # of the size that is usual
_USUAL = 25  # numbers that tell what is usual


@dataclass(slots=True)
class Usual:
    """What is usual for a number that comes at each step."""

    _last: deque[float] = field(default_factory=lambda: deque(maxlen=_USUAL))

    def is_left_by(self, number: float) -> bool:
        """Return whether a number is far larger than those before it, or not finite; and remember it."""
        size = abs(number)
        usual = median(self._last) if self._last else size
        if not math.isfinite(size):
            return True
        self._last.append(size)
        return size > _LEAP * usual > 0


@dataclass(slots=True)
class Closeness:
    """Decides for each recorded step; one per session."""

    always: bool = False
    by_budget: bool = True  # it decides which steps are recorded, and recorded ones are few
    _recorded: int = 0
    _alarmed: int = 0  # steps left
    _alarms: int = 0
    _loss: Usual = field(default_factory=Usual)

    def wants(self, own_s: float) -> bool:
        """Return whether the recorded step that begins now is looked at closely; `own_s` was spent so far."""
        self._recorded += 1
        if self._alarmed:
            self._alarmed -= 1
            return True
        first = self._recorded <= (FIRST if own_s < FIRST_S else FEWEST)
        return self.always or first or self._recorded % self._distance() == 0

    def _distance(self) -> int:
        if self.by_budget:
            return OFTEN
        return EVERY if self._recorded < MANY else LATER

    def note_loss(self, loss: float) -> None:
        """Look closely for a while if a loss leaves its course."""
        if self._loss.is_left_by(loss):
            self.alarm()

    def alarm(self) -> None:
        """Look closely for a while, unless that has come of nothing often enough, or is done anyway."""
        if self._alarms < MAX_ALARMS and not self._alarmed and self._recorded > FIRST:
            self._alarms += 1
            self._alarmed = ALARMED
