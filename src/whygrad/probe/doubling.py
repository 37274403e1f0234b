"""What is done at the first step and whenever twice as many are done."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class Doubling:
    """Tells when, though not every number is asked for."""

    _next: int = 0

    def is_due(self, number: int) -> bool:
        """Return whether a power of two, or 0, was reached since the last time; numbers do not fall."""
        if number < self._next:
            return False
        self._next = 1 << number.bit_length()
        return True
