"""Which steps of a long run stay in its file: the longer ago, the fewer.

    age     up to w   to 2 w   to 4 w   to 8 w
    kept    all       1/2      1/4      1/8      of the steps

Each doubling of the age halves the density, so that a run of any length keeps about w steps for each. The window w
narrows as the run grows. A step goes by its turn, its number among the steps of its own optimizer: however a generator
and a discriminator take turns, neither vanishes.
"""

from __future__ import annotations

import math
from collections import deque
from itertools import islice

_LEVELS = 48  # a turn that 2**47 divides is as good as kept for ever
_NARROWER = 15 / 16
_WIDER = 65 / 64  # with each commit, while there is room for twice as many
_BEFORE = 12  # steps that stay before one that is marked
_AFTER = 4
_RECENT = 256  # steps among which these are looked for


class Thinner:
    """The numbers of the steps that are kept; the newest ones and the first ones always are."""

    def __init__(self, most: int, dense: int) -> None:
        """Keep at most `most` steps, and the first `dense` of the run among them."""
        self._most = most
        self._dense = dense
        self._levels: list[deque[int]] = [deque() for _ in range(_LEVELS)]  # by how many times 2 divides the turn
        self._for_good: list[tuple[int, int]] = []  # step, level
        self._marked: set[int] = set()
        self._recent: deque[int] = deque(maxlen=_RECENT)
        self._coming = 0  # steps after a marked one that are still to come
        self._count = 0
        self._last = -1
        self._window = math.inf

    def __len__(self) -> int:
        return self._count

    @property
    def is_dense(self) -> bool:
        """Return whether the next step is still one of the first, which stay."""
        return self._dense > 0

    def add(self, step: int, turn: int) -> None:
        """Keep a step, for now.

        Args:
            step: Its number, above all earlier ones.
            turn: Its number among those of its optimizer.
        """
        self._last = step
        self._count += 1
        self._recent.append(step)
        if self._coming:
            self._coming -= 1
            self._marked.add(step)
        if self._dense:
            self._dense -= 1
            self._for_good.append((step, _level(turn)))
        else:
            self._levels[_level(turn)].append(step)

    def mark(self, step: int) -> None:
        """Keep a step for good, and some before and after it: something happened there."""
        before = [each for each in self._recent if each <= step][-_BEFORE:]
        after = list(islice((each for each in self._recent if each > step), _AFTER))
        self._marked.update(before, after, (step,))
        self._coming = _AFTER - len(after)

    def expire(self, *, narrower: bool = False) -> list[int]:
        """Return the steps whose time is over, and keep them no more.

        Args:
            narrower: There is no room for so many; asked again and again, it lets go of all, the newest last.
        """
        gone: list[int] = []
        if narrower and self._count <= 1:
            return self._give_up()
        if narrower:
            self._narrow()
        elif 2 * self._count < self._most:
            self._window *= _WIDER
        self._drop(gone)
        while self._count > self._most:
            self._narrow()
            self._drop(gone)
        return gone

    def _narrow(self) -> None:
        if 2 * len(self._for_good) >= self._count:
            self._release()
        heads = [level[0] for level in self._levels if level]
        self._window = min(self._window, self._last - min(heads) + 1) * _NARROWER

    def _give_up(self) -> list[int]:
        left = [step for step, _ in self._for_good] + [step for level in self._levels for step in level]
        self._for_good.clear()
        for level in self._levels:
            level.clear()
        self._count = 0
        return left

    def _release(self) -> None:
        """Treat the later half of what was to stay for good as all other steps: there is room for too few."""
        self._dense = 0
        half = len(self._for_good) // 2
        for step, level in self._for_good[half:]:
            self._marked.discard(step)
            self._levels[level] = deque(sorted((*self._levels[level], step)))
        del self._for_good[half:]

    def _drop(self, gone: list[int]) -> None:
        lifetime = self._window
        for number, level in enumerate(self._levels):
            while level and self._last - level[0] > lifetime:
                step = level.popleft()
                if step in self._marked:
                    self._for_good.append((step, number))
                else:
                    gone.append(step)
                    self._count -= 1
            lifetime *= 2


def _level(turn: int) -> int:
    return min((turn & -turn).bit_length() - 1, _LEVELS - 1) if turn else _LEVELS - 1
