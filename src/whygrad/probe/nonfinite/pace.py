"""How often steps that are not recorded are looked at: each of them while a look is cheap, fewer where it is not."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

SHARE = 0.01  # of the run's time
CREDIT_S = 0.1  # that may be spent at once
CHEAP_S = 60e-6  # a look that takes no longer is always worth it
RARELY = 16  # even over the share, one step in this many is looked at
UNRISKY = 8  # where the last graph held nothing that could break, one step in this many is looked at

_clock = time.perf_counter


@dataclass(slots=True)
class Pace:
    """Decides for each backward pass; one per session."""

    is_risky: bool = True  # the last graph held nodes whose derivative can be infinite
    _began: float = field(default_factory=_clock)
    _spent: float = 0.0
    _last: float = 0.0
    _skipped: int = 0
    _fruitless: int = 0

    def is_due(self) -> bool:
        """Return whether to look at the pass that begins now."""
        affordable = self._last <= CHEAP_S or self._spent <= CREDIT_S + SHARE * (_clock() - self._began)
        enough = (min(self._fruitless, RARELY) if affordable else RARELY) if self.is_risky else UNRISKY
        self._skipped += 1
        if self._skipped < enough:
            return False
        self._skipped = 0
        return True

    def note_pass(self, *, found: bool) -> None:
        """Note whether a pass that was watched node by node showed anything: where none does, fewer are."""
        self._fruitless = 0 if found else self._fruitless + 1

    def count(self, seconds: float) -> None:
        """Count what a look took."""
        self._last = seconds
        self._spent += seconds
