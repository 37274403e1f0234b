"""The loop as it ran, read as rules need it: rounds with their happenings, and which passes a step used."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from whygrad.evidence import Evidence
from whygrad.model import Deed, Happening, Mark, Optimizer, Parameter, Place, Round
from whygrad.rules._once import once
from whygrad.rules._select import held_by

CLEARS = (Deed.CLEAR, Deed.CLEAR_BY_HAND)
MIN_ROUNDS = 3  # fewer show no habit
_ADAPTIVE = ("adam", "rms", "adagrad", "adadelta", "adafactor", "lamb", "lion", "rprop", "muon", "sophia", "yogi")
_REGULAR = 0.6  # of the rounds lose the same number of passes


@dataclass(frozen=True, slots=True)
class Turn:
    """One kind of round of an optimizer."""

    round: Round
    happenings: tuple[Happening, ...]

    @property
    def count(self) -> int:
        """Return how many rounds went like this."""
        return self.round.count

    @property
    def end(self) -> Happening:
        """Return the step, or the skip, that ended it."""
        return self.happenings[-1]

    @property
    def stepped(self) -> bool:
        """Return whether a step ended it."""
        return self.end.deed is Deed.STEP

    def reaches(self, happening: Happening) -> bool:
        """Return whether a happening is a backward pass that changed the gradients of the round's optimizer."""
        return happening.deed is Deed.BACKWARD and self.round.optimizer in happening.optimizers

    def own_passes(self) -> int:
        """Return the number of backward passes that changed the gradients of the round's optimizer."""
        return sum(each.times for each in self.happenings if self.reaches(each))

    def kept_passes(self) -> Iterator[Happening]:
        """Yield the backward passes whose gradients were there at the end."""
        for happening in reversed(self.happenings):
            if happening.deed in CLEARS:
                return
            if self.reaches(happening):
                yield happening

    def clears(self) -> Iterator[Happening]:
        """Yield what cleared the gradients."""
        return (each for each in self.happenings if each.deed in CLEARS)


def turns_of(evidence: Evidence, optimizer: Optimizer, *, unfinished: bool = False) -> list[Turn]:
    """Return the kinds of rounds of an optimizer, the most frequent first.

    Args:
        evidence: The facts.
        optimizer: Whose rounds.
        unfinished: Also the one that the end of the run cut off.
    """
    mine = _turns(evidence).get(optimizer.id, ())
    return [turn for turn in mine if unfinished or not turn.round.unfinished]


@once
def _turns(evidence: Evidence) -> Mapping[int, tuple[Turn, ...]]:
    """Return id of an optimizer -> all kinds of its rounds, the most frequent first."""
    happenings: dict[int, list[Happening]] = {}
    for happening in evidence.happenings:
        happenings.setdefault(happening.round, []).append(happening)
    found: dict[int, list[Turn]] = {}
    for each in sorted(evidence.rounds, key=lambda each: -each.count):
        if each.id in happenings:
            found.setdefault(each.optimizer, []).append(Turn(each, tuple(happenings[each.id])))
    return {optimizer: tuple(turns) for optimizer, turns in found.items()}


def whole_turns(evidence: Evidence, optimizer: Optimizer) -> list[Turn]:
    """Return the kinds of rounds of which everything is known and the program itself ran every pass."""
    return [turn for turn in turns_of(evidence, optimizer) if not turn.round.cut_short and not turn.round.closure]


def total(turns: Iterable[Turn]) -> int:
    """Return how many rounds these are."""
    return sum(turn.count for turn in turns)


def is_habit(part: Sequence[Turn], whole: Sequence[Turn], share: float = 0.5) -> bool:
    """Return whether what happened in a part of the rounds is how the loop is written."""
    return total(part) >= MIN_ROUNDS and total(part) >= share * total(whole)


def has(happening: Happening, mark: Mark) -> bool:
    """Return whether a happening bears a mark."""
    return mark.value in happening.marks


def is_adaptive(optimizer: Optimizer) -> bool:
    """Return whether an optimizer divides by the size of the gradient, as far as its name tells."""
    return any(word in optimizer.type.lower() for word in _ADAPTIVE)


def step_size(evidence: Evidence, optimizer: Optimizer) -> float | None:
    """Return the median length of a step against the weights; None where too few steps were recorded."""
    measured = (s for s in evidence.steps if s.optimizer == optimizer.id and s.update_l2 is not None and s.weight_l2)
    sizes = [(step.update_l2 or 0.0) / (step.weight_l2 or math.nan) for step in evidence.evenly(measured)]
    return statistics.median(sizes) if len(sizes) >= 3 else None


def trained_by(evidence: Evidence, optimizer: Optimizer) -> tuple[Parameter, ...]:
    """Return what an optimizer holds that a backward pass reached; where none was walked, all that may learn."""
    held = [parameter for parameter in held_by(evidence, optimizer) if parameter.requires_grad]
    return tuple(p for p in held if p.reached or p.gradient_steps) or tuple(held)


def places(*happenings: Happening | None) -> tuple[Place, ...]:
    """Return the lines of happenings, each once."""
    return tuple(dict.fromkeys(each.place for each in happenings if each is not None and each.place is not None))


@dataclass(frozen=True, slots=True)
class Lost:
    """Passes of one round that were cleared unused."""

    clear: Happening
    first: Happening
    passes: int


def lost_passes(turn: Turn, *, used: bool = False) -> Lost | None:
    """Return the passes of a round that were cleared before a step used them.

    Args:
        turn: The round.
        used: Also those that the program read or used by hand.
    """
    waiting: list[Happening] = []
    lost: list[tuple[Happening, Happening]] = []
    fed: set[int] = set()  # optimizers that a pass has reached since their last step
    for happening in turn.happenings:
        fed.update(happening.optimizers if happening.deed is Deed.BACKWARD else ())
        if turn.reaches(happening):
            if not has(happening, Mark.INPUT) and not has(happening, Mark.ON_THE_WAY):
                waiting.append(happening)
        elif happening.deed is Deed.STEP:
            # One that steps with nothing was meant to be fed by the pass before: a discriminator that was left frozen.
            theirs = waiting if fed.isdisjoint(happening.optimizers) else ()
            waiting = [
                each for each in waiting if each not in theirs and set(happening.optimizers).isdisjoint(each.optimizers)
            ]
            fed.difference_update(happening.optimizers)
        elif happening.deed in CLEARS:
            if used or not has(happening, Mark.USED):
                lost += [(happening, each) for each in waiting if set(each.optimizers) <= set(happening.optimizers)]
            waiting = []
    if not lost:
        return None
    clear = Counter(each for each, _ in lost).most_common(1)[0][0]
    return Lost(clear, lost[0][1], sum(each.times for _, each in lost))


def is_regular(lossy: Sequence[tuple[Turn, Lost]]) -> bool:
    """Return whether most of the rounds that lose passes lose the same number of them."""
    rounds: Counter[int] = Counter()
    for turn, lost in lossy:
        rounds[lost.passes] += turn.count
    return rounds.most_common(1)[0][1] >= _REGULAR * total(turn for turn, _ in lossy)
