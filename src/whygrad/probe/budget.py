"""Which steps are recorded: dense at the start, then as often as the budget allows."""

from __future__ import annotations

from dataclasses import dataclass

DENSE_STEPS = 100  # most faults show within a hundred steps
MIN_SHARE = 50  # even over budget, one round of steps in this many is recorded


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

    def record_next(self, *, steps_done: int, optimizers: int, own_s: float, elapsed_s: float) -> bool:
        """Return whether the step that begins now is recorded."""
        if self.every is None and steps_done < DENSE_STEPS:
            return True
        if self._round_left > 0:
            self._round_left -= 1
            return True
        if self._due(own_s, elapsed_s, max(1, optimizers)):
            self._skipped = 0
            self._round_left = max(1, optimizers) - 1
            return True
        self._skipped += 1
        return False

    def _due(self, own_s: float, elapsed_s: float, optimizers: int) -> bool:
        if self.every is not None:
            return self._skipped >= (self.every - 1) * optimizers
        return own_s <= self.overhead * elapsed_s or self._skipped >= MIN_SHARE * optimizers
