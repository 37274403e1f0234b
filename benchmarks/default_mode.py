"""What the default mode costs: a dense start, then as much as the budget allows.

The start is made in pieces, with a piece of the plain loop after each, so that its cost is measured as a whole. What
comes after it is measured in turns. Both together say what a run of a given length costs: a short one is mostly start.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from benchmarks.turns import Worker

LENGTHS = {"whygrad, run of 1 minute": 60.0, "whygrad, run of 5 minutes": 300.0}  # seconds
_PIECE_S = 3.0
_PIECE_STEPS = 10


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of the start."""

    steps: int
    spent_s: float  # processor time
    plain_s: float  # the same number of steps of the plain loop
    own_s: float  # what whygrad says that it took of it, by the clock

    @property
    def extra_s(self) -> float:
        """Return what watching took."""
        return self.spent_s - self.plain_s


def start(watched: Worker, plain: Worker, *, steps: int, seconds: float) -> list[Piece]:
    """Make the first steps of a run: at least `steps`, and at least `seconds` of processor time."""
    pieces: list[Piece] = []
    before_s: float = watched.ask("modules")["own_s"]
    while sum(piece.steps for piece in pieces) < steps or sum(piece.spent_s for piece in pieces) < seconds:
        done = sum(piece.steps for piece in pieces)
        many = min(_PIECE_STEPS, steps - done)
        if done >= steps:
            many = max(1, round(_PIECE_S / (pieces[-1].spent_s / pieces[-1].steps)))
        answer = watched.ask(f"run {many}")
        plain_s = plain.ask(f"run {max(1, many // 5)}")["step_s"]
        pieces.append(Piece(many, many * answer["step_s"], many * plain_s, answer["own_s"] - before_s))
        before_s = answer["own_s"]
    return pieces


def first(pieces: Sequence[Piece], steps: int) -> Sequence[Piece]:
    """Return the pieces of the first `steps` steps."""
    return [piece for index, piece in enumerate(pieces) if sum(p.steps for p in pieces[: index + 1]) <= steps]


def over(pieces: Sequence[Piece], after: float, seconds: float) -> float:
    """Return the ratio to the plain loop of a run of that length, start included.

    Args:
        pieces: The start.
        after: The ratio after it.
        seconds: Processor time of the run.
    """
    spent = plain = 0.0
    for piece in pieces:
        share = min(1.0, (seconds - spent) / piece.spent_s)
        spent += share * piece.spent_s
        plain += share * piece.plain_s
        if share < 1:
            return spent / plain
    return seconds / (plain + (seconds - spent) / after)


def whole_run(pieces: Sequence[Piece], after: Mapping[str, float], seconds: float) -> dict[str, float]:
    """Return `over` for the median and the quartiles of the ratio after the start."""
    return {name: over(pieces, ratio, seconds) for name, ratio in after.items()}
