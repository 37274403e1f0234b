"""Which steps are recorded: dense at the start, then as often as the budget allows.

The promise is that the probe's own time stays within a share of the run's once the run is longer than a minute. What
the share of a minute comes to may be spent at once, on the first steps, where most faults show; and where a few dozen
steps take more than that, as when each of thousands of calls is traced, that of five minutes.

What the probe does at every step, recorded or not, comes first: where that alone is over the budget, as with models so
small that a step takes less than a millisecond, a quarter of the share still goes to recorded steps.
"""

from __future__ import annotations

import time
from collections import deque
from dataclasses import dataclass, field
from statistics import median

_clock = time.perf_counter  # bound here: programs mock `time`
_processor_clock = time.thread_time

DENSE_STEPS = 100  # most faults show within a hundred steps
FEWEST_STEPS = 30  # that are recorded at the start though they are dear
ADVANCE_S = 60.0  # of the run's time, whose share may be spent at the start
EARLY = 0.5  # of what the dense start leaves of it
EARLY_S = 20.0  # by when that is spent: most runs are short
LONG_ADVANCE_S = 300.0  # likewise, for the fewest steps
OTHERS = 0.5  # of the share: for steps that are not recorded
OTHERS_ADVANCE_S = 40.0  # of the run's time, whose part of that may be spent at the start
ALWAYS = 0.25  # of the share: for recorded steps, whatever the rest costs
_SLOWEST = 0.125  # of our own pace, that a busy machine is made up for
_REMEMBERED = 5  # costs of recorded steps


@dataclass(slots=True)
class Pace:
    """How much of the clock's time our own work gets of a processor: entered around a part of it."""

    _clock_s: float = 0.0
    _processor_s: float = 0.0

    def __enter__(self) -> None:
        self._clock_s -= _clock()
        self._processor_s -= _processor_clock()

    def __exit__(self, *_: object) -> None:
        self._clock_s += _clock()
        self._processor_s += _processor_clock()

    @property
    def value(self) -> float:
        """Return processor time by the clock's time; 1 at the beginning."""
        return min(1.0, self._processor_s / self._clock_s) if self._clock_s > 0 else 1.0


@dataclass(slots=True)
class Budget:
    """Decides after each step whether the next round of steps is recorded.

    A round is as many steps as there are optimizers at work: with a generator and a discriminator that take turns,
    recording every second step would see only one of them.
    """

    overhead: float  # share of the run's time that the probe may take
    every: int | None = None  # record every N-th round whatever it costs; None: let the budget decide
    _round_left: int = 0
    _skipped: int = 0
    _recorded: bool = True  # the step before the next decision
    _own_s: float = 0.0  # at the last decision
    _start_s: float = 0.0  # before the first step
    _dense_s: float = 0.0  # since then, when the dense start was over
    _costs: deque[float] = field(default_factory=lambda: deque(maxlen=_REMEMBERED))  # of recorded steps
    _sparse_since_s: float | None = None  # when the dense start was over
    _sparse_s: float = 0.0  # spent on recorded steps since
    _recorded_s: float = 0.0  # spent on recorded steps in all

    @property
    def _stepping_s(self) -> float:
        """Return what was spent since the first step began."""
        return self._own_s - self._start_s

    def begin(self, own_s: float) -> None:
        """Begin with what was spent before the first step: a slow start leaves the dense one alone."""
        self._own_s = self._start_s = own_s

    def record_next(
        self, *, steps_done: int, optimizers: int, own_s: float, elapsed_s: float, pace: float = 1.0
    ) -> bool:
        """Return whether the step that begins now is recorded.

        Args:
            steps_done: So far.
            optimizers: At work.
            own_s: Time that the probe has taken so far.
            elapsed_s: Time since the run began.
            pace: Processor time by the clock's time, of the probe's own work: below 1 on a busy machine.
        """
        if self._recorded:
            cost = own_s - self._own_s
            self._costs.append(cost)
            self._recorded_s += cost
            if self._sparse_since_s is not None:
                self._sparse_s += cost
        self._own_s = own_s
        self._recorded = self._decides(steps_done, max(1, optimizers), elapsed_s, max(pace, _SLOWEST))
        return self._recorded

    def is_over(self, elapsed_s: float, pace: float = 1.0) -> bool:
        """Return whether more was spent than the run so far, and the advance, allow: in all, or on steps in between.

        Half of the share is for steps that are not recorded, so that the other half is left for those that are.
        """
        if self.every is not None:
            return False
        pace = max(pace, _SLOWEST)
        others_s = self._stepping_s - self._recorded_s
        is_over = self._stepping_s > self._allowed(ADVANCE_S, elapsed_s, pace)
        return is_over or others_s > OTHERS * self._allowed(OTHERS_ADVANCE_S, elapsed_s, pace)

    def _allowed(self, advance_s: float, elapsed_s: float, pace: float) -> float:
        return self.overhead * max(advance_s / pace, elapsed_s)

    def _decides(self, steps_done: int, optimizers: int, elapsed_s: float, pace: float) -> bool:
        if self.every is None and self._is_dense(steps_done, elapsed_s, pace):
            return True
        if self._round_left > 0:
            self._round_left -= 1
            return True
        if self._is_due(optimizers, elapsed_s):
            self._skipped = 0
            self._round_left = optimizers - 1
            return True
        self._skipped += 1
        return False

    def _is_dense(self, steps_done: int, elapsed_s: float, pace: float) -> bool:
        if self._sparse_since_s is not None:
            return False
        advance_s = LONG_ADVANCE_S if steps_done < FEWEST_STEPS else ADVANCE_S
        allowed = self._allowed(advance_s, elapsed_s, pace)
        if steps_done < DENSE_STEPS and self._stepping_s + self._cost() <= allowed:
            return True
        self._sparse_since_s, self._dense_s = elapsed_s, self._stepping_s
        return False

    def _is_due(self, optimizers: int, elapsed_s: float) -> bool:
        if self.every is not None:
            return self._skipped >= (self.every - 1) * optimizers
        cost = self._cost() * optimizers
        share = self.overhead * elapsed_s
        return (
            self._own_s + cost <= share or self._is_early(cost, elapsed_s) or self._is_reserved(cost, share, elapsed_s)
        )

    def _is_early(self, cost: float, elapsed_s: float) -> bool:
        """Return whether the dense start has left something of the share of the first minute, and its turn has come.

        Half of it is for recorded steps, whatever it costs to follow the others.
        """
        if elapsed_s >= ADVANCE_S:
            return False
        left = max(0.0, self.overhead * ADVANCE_S - self._dense_s)
        return self._sparse_s + cost <= EARLY * left * min(1.0, elapsed_s / EARLY_S)

    def _is_reserved(self, cost: float, share: float, elapsed_s: float) -> bool:
        """Return whether the rest has taken more than it should have, and the quarter of recorded steps has room."""
        since = elapsed_s - (self._sparse_since_s or 0.0)
        others_s = self._own_s - self._recorded_s
        return others_s > (1 - ALWAYS) * share and self._sparse_s + cost <= ALWAYS * self.overhead * since

    def _cost(self) -> float:
        """Return what a recorded step takes, going by the last ones: some of them also wrote to the file."""
        return median(self._costs) if self._costs else 0.0
