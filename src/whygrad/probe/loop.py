"""The order of the loop: what happens to the gradients of each optimizer from one of its steps to the next.

Every happening is kept in order, with its line; rounds in which the same happened are counted together. Which
optimizers a call touched is told from a few tensors of each (see `sentinels`), so every step can be followed.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import groupby
from typing import NamedTuple

import torch

from whygrad.model import Deed, Happening, Mark, Round
from whygrad.probe.byproducts import on_the_way
from whygrad.probe.optimizers import TrackedOptimizer
from whygrad.probe.parameters import ParameterTable, Tracked
from whygrad.probe.sentinels import Sentinels, Stamp, are_gone
from whygrad.probe.source import Site, place_or_none

MAX_ROUNDS = 200  # distinct ones
MAX_HAPPENINGS = 128  # of a round
MAX_OPTIMIZERS = 64  # that are followed at a time
MAX_WALKS = 64  # graphs that are searched for by-products; the same line does the same again


class Happened(NamedTuple):
    """One happening, as it is told from others."""

    deed: Deed
    site: Site | None
    optimizers: tuple[int, ...] = ()
    marks: tuple[str, ...] = ()


@dataclass(slots=True)
class _Counted:
    id: int
    count: int
    first: int
    last: int


@dataclass(slots=True)
class Course:
    """One optimizer, and its round that goes on."""

    id: int
    ref: weakref.ref[torch.optim.Optimizer]
    sentinels: Sentinels = field(default_factory=Sentinels)
    happened: list[Happened] = field(default_factory=list)
    seen: tuple[Stamp, ...] = ()  # the gradients after the last happening
    weights: tuple[int, ...] = ()  # versions of the weights after the last backward pass
    steps: int = 0
    fresh: bool = False  # a backward pass added to the gradients since they were last cleared or used
    cleared: bool = False  # they were cleared since the last step
    read: bool = False  # the program read them since the last backward pass
    empty: bool = False  # there are none at the step that is about to be made
    replaced: bool = False  # the program put others in the place of what the backward passes made
    cut_short: bool = False
    begun: bool = True  # the round was followed from its beginning
    whole: int = 0  # rounds that were, since steps were last passed over
    last: _Counted | None = None  # how the last of them went

    def add(self, happened: Happened) -> None:
        """Append to the round."""
        if len(self.happened) < MAX_HAPPENINGS:
            self.happened.append(happened)
        else:
            self.cut_short = True

    def look(self, *, closely: bool) -> tuple[Stamp, ...]:
        """Take note of a clear by hand since the last happening; return the gradients as they are now.

        Args:
            closely: Look at elements too, where nothing else shows a clear.
        """
        stamps = self.sentinels.stamps()
        if not are_gone(self.seen) and self._are_cleared(stamps, closely=closely):
            self.add(Happened(Deed.CLEAR_BY_HAND, None, (self.id,), self.uses()))
            self.clear()
        self.replaced = self.replaced or _are_others(self.seen, stamps)
        self.seen = stamps
        return stamps

    def _are_cleared(self, stamps: tuple[Stamp, ...], *, closely: bool) -> bool:
        if are_gone(stamps):
            return True
        waits = self.steps > 0 and not self.fresh and not self.cleared
        hidden = closely and waits  # `.data.zero_()` leaves no other trace
        return (hidden or stamps != self.seen) and self.sentinels.are_zero()

    def uses(self) -> tuple[str, ...]:
        """Return the mark of gradients that were put to use by hand."""
        used = self.fresh and (self.read or self.weights != self.sentinels.versions())
        return (Mark.USED.value,) if used else ()

    def clear(self) -> None:
        """Forget the backward passes so far."""
        self.fresh = self.read = False
        self.cleared = True

    def begin_round(self) -> None:
        """Begin the next round."""
        self.happened = []
        self.fresh = self.cleared = self.read = self.cut_short = self.replaced = False


def _are_others(before: tuple[Stamp, ...], now: tuple[Stamp, ...]) -> bool:
    """Return whether every gradient is another tensor than before: one was assigned, nothing was added."""
    pairs = [(old, new) for old, new in zip(before, now, strict=False) if old is not None and new is not None]
    return bool(pairs) and all(old[0] != new[0] for old, new in pairs)


_Key = tuple[int, bool, bool, bool, bool, tuple[tuple[Happened, int], ...]]


class Loop:
    """Follows the optimizers of one session."""

    def __init__(self, known: ParameterTable) -> None:
        self._known = known
        self._courses: dict[int, Course] = {}
        self._rounds: dict[_Key, _Counted] = {}
        self._handed_over: set[int] = set()  # rounds whose happenings were given away
        self._before: dict[int, tuple[Stamp, ...]] = {}
        self._leaves: Mapping[int, torch.Tensor] | None = None  # of the pass that is about to run
        self._pairs: set[tuple[int, int]] | None = None  # of the pass that is about to run
        self._walks = 0
        self._marks: dict[tuple[Site | None, tuple[int, ...]], tuple[bool, set[tuple[int, int]]]] = {}
        self._used: set[tuple[int, Site | None]] = set()

    # -- optimizers -------------------------------------------------------------------------------------------------

    def follow(self, optimizer: torch.optim.Optimizer, tracked: TrackedOptimizer) -> Course | None:
        """Return the course of an optimizer, begun at first sight; None if there are too many."""
        course = self._courses.get(tracked.id)
        if course is None:
            self._courses = {number: each for number, each in self._courses.items() if each.ref() is not None}
            if len(self._courses) >= MAX_OPTIMIZERS:
                return None
            course = self._courses[tracked.id] = Course(tracked.id, tracked.ref)
            course.sentinels.choose(optimizer, self._known)
        return course

    def _changed(self) -> list[Course]:
        """Return the optimizers whose gradients changed since `_before`, and take note of the change."""
        changed = []
        for course in self._courses.values():
            stamps = course.sentinels.stamps()
            if stamps != self._before.get(course.id, stamps):
                changed.append(course)
            course.seen = stamps
        return changed

    def look(self, *, closely: bool = False) -> None:
        """Take note of how the gradients are before a call that may change them."""
        self._before = {course.id: course.look(closely=closely) for course in self._courses.values()}

    # -- backward ---------------------------------------------------------------------------------------------------

    def before_backward(self) -> None:
        """Take note of how the gradients are before a backward pass."""
        self._leaves = self._pairs = None
        self.look(closely=True)

    def note_leaves(
        self,
        roots: tuple[torch.Tensor, ...],
        inputs: tuple[torch.Tensor, ...] | None,
        leaves: Mapping[int, torch.Tensor],
    ) -> None:
        """Take note of what the graph of the pass that is about to run reaches."""
        asked = None if inputs is None else {id(tensor) for tensor in inputs}
        self._leaves = leaves if asked is None else {key: leaf for key, leaf in leaves.items() if key in asked}
        if len(self._courses) > 1 and self._walks < MAX_WALKS and len(self._owners(self._leaves.values())) > 1:
            self._walks += 1
            self._pairs = on_the_way(roots, self._owners_of)

    def _owners_of(self, leaf: torch.Tensor) -> Iterable[int]:
        entry = self._known.get(leaf)
        return entry.optimizers if entry is not None else ()

    def _owners(self, leaves: Iterable[torch.Tensor]) -> set[int]:
        return {owner for leaf in leaves for owner in self._owners_of(leaf)}

    def after_backward(self, site: Site | None, *, scaled: bool) -> tuple[int, ...]:
        """Note a backward pass that has run; return the ids of the optimizers whose gradients it changed."""
        reached = {course.id for course in self._changed()}
        if self._leaves is not None:
            self._watch_what_learns(self._owners(self._leaves.values()) - reached)
            reached |= self._owners(self._leaves.values())
        ids = tuple(sorted(reached & self._courses.keys()))
        to_input, pairs = self._traits(site, ids)
        common = [mark.value for mark, holds in ((Mark.SCALED, scaled), (Mark.INPUT, to_input)) if holds]
        for course in self._courses.values():
            aside = any(near == course.id and far in reached for near, far in pairs)
            marks = (*common, Mark.ON_THE_WAY.value) if aside else tuple(common)
            course.add(Happened(Deed.BACKWARD, site, ids, marks))
            if course.id in reached:
                course.fresh, course.read = True, False
                course.weights = course.sentinels.versions()
        return ids

    def _traits(self, site: Site | None, ids: tuple[int, ...]) -> tuple[bool, set[tuple[int, int]]]:
        """Return whether the pass reached an input, and by-products: as seen now, or when the line last did so."""
        known = self._marks.get((site, ids), (False, set()))
        if self._leaves is None:
            return known
        pairs = known[1] if self._pairs is None else self._pairs
        traits = self._marks[site, ids] = (any(self._is_input(leaf) for leaf in self._leaves.values()), pairs)
        return traits

    def _is_input(self, leaf: torch.Tensor) -> bool:
        return not isinstance(leaf, torch.nn.Parameter) and not self._owners_of(leaf)

    def _watch_what_learns(self, unseen: Iterable[int]) -> None:
        """Choose among what a pass reached, where it left all sentinels of an optimizer alone."""
        entries = [self._known.get(leaf) for leaf in self._leaves.values()] if self._leaves else []
        for number in unseen:
            course = self._courses.get(number)
            mine: list[Tracked] = [entry for entry in entries if entry is not None and number in entry.optimizers]
            if course is not None and mine:
                course.sentinels.take(mine)
                course.seen = course.sentinels.stamps()

    # -- what changes gradients -------------------------------------------------------------------------------------

    def note_read(self, tensor: torch.Tensor) -> None:
        """Note that the program read a gradient by hand."""
        for owner in self._owners_of(tensor):
            course = self._courses.get(owner)
            if course is not None and course.fresh:
                course.read = True

    def after_clear(self, tracked: TrackedOptimizer | None, site: Site | None) -> None:
        """Note a call of zero_grad, by an optimizer or a module, that has returned; `look` was called before it."""
        cleared = {course.id: course for course in self._changed()}
        if tracked is not None and tracked.id in self._courses:
            cleared[tracked.id] = self._courses[tracked.id]
        ids = tuple(sorted(cleared))
        for course in cleared.values():
            if course.uses():
                self._used.add((course.id, site))
            used = (Mark.USED.value,) if (course.id, site) in self._used else ()
            course.add(Happened(Deed.CLEAR, site, ids, used))
            course.clear()

    def after_change(self, deed: Deed, site: Site | None, touched: Iterable[int] = ()) -> tuple[int, ...]:
        """Note a clip or an unscale that has returned, and return whose gradients it changed.

        Args:
            deed: Which of them.
            site: Its line.
            touched: Ids of optimizers that it was asked for, though there may have been nothing to change.
        """
        ids = {course.id for course in self._changed()} | (set(touched) & self._courses.keys())
        for number in ids:
            self._courses[number].add(Happened(deed, site, tuple(sorted(ids))))
        return tuple(sorted(ids))

    def scheduled(self, tracked: TrackedOptimizer, site: Site | None) -> None:
        """Note a step of a learning rate scheduler."""
        course = self._courses.get(tracked.id)
        if course is not None:
            course.add(Happened(Deed.SCHEDULE, site, (tracked.id,)))

    # -- steps ------------------------------------------------------------------------------------------------------

    def before_step(self, optimizer: torch.optim.Optimizer, tracked: TrackedOptimizer) -> None:
        """Look at the gradients that an optimizer is about to use."""
        course = self.follow(optimizer, tracked)
        if course is not None:
            course.sentinels.choose(optimizer, self._known)
            stamps = course.look(closely=True)
            course.empty = are_gone(stamps) or (course.cleared and not course.fresh and course.sentinels.are_zero())

    def stepped(self, tracked: TrackedOptimizer, site: Site | None, *, step: int, closure: bool) -> None:
        """Note a step, which ends the round of its optimizer."""
        course = self._courses.get(tracked.id)
        for other in self._courses.values():
            if other is not course:
                other.add(Happened(Deed.STEP, site, (tracked.id,)))
        if course is not None:
            if closure:
                course.empty = are_gone(course.look(closely=False))
            traits = ((Mark.EMPTY, course.empty), (Mark.REPLACED, course.replaced))
            marks = tuple(mark.value for mark, holds in traits if holds)
            self._end(course, Happened(Deed.STEP, site, (tracked.id,), marks), step, closure=closure)
            course.steps += 1

    def skipped(self, tracked: TrackedOptimizer, site: Site | None, *, step: int) -> None:
        """Note a step that a GradScaler left out; it ends the round too."""
        course = self._courses.get(tracked.id)
        if course is not None:
            self._end(course, Happened(Deed.SKIP, site, (tracked.id,)), step, closure=False)

    def _end(self, course: Course, last: Happened, step: int, *, closure: bool, unfinished: bool = False) -> None:
        if not course.begun:
            course.begun = True
            course.begin_round()
            course.seen = course.sentinels.stamps()
            return
        happened = tuple((each, len(list(same))) for each, same in groupby((*course.happened, last)))
        key = (course.id, course.steps == 0, closure, course.cut_short, unfinished, happened)
        counted = self._rounds.get(key)
        if counted is not None:
            counted.count += 1
            counted.last = step
        elif len(self._rounds) < MAX_ROUNDS:
            counted = self._rounds[key] = _Counted(len(self._rounds), 1, step, step)
        course.last = counted
        course.begin_round()
        course.whole += 1
        course.seen = course.sentinels.stamps()

    def end_all(self, step: int) -> None:
        """End the rounds that go on: the run is over."""
        for course in self._courses.values():
            if course.happened:
                self._end(course, course.happened.pop(), step, closure=False, unfinished=True)

    def pass_over(self, tracked: TrackedOptimizer, steps: int, step: int) -> None:
        """Count rounds that were not followed, up to number `step`, as ones that went like the last that was."""
        course = self._courses.get(tracked.id)
        if course is not None and course.last is not None:
            course.last.count += steps
            course.last.last = step

    def resume(self, stepped: int | None) -> None:
        """Follow the optimizers again after steps that were passed over.

        Args:
            stepped: Id of the optimizer that has just made a step, if that is where the passing over ended: only its
                next round is whole.
        """
        for course in self._courses.values():
            course.begin_round()
            course.begun = course.id == stepped
            course.whole = 0
            course.seen = course.sentinels.stamps()

    def is_known(self) -> bool:
        """Return whether a whole round of each optimizer was followed since steps were last passed over."""
        return all(course.whole for course in self._courses.values() if course.ref() is not None)

    # -- facts ------------------------------------------------------------------------------------------------------

    def facts(self) -> Iterator[Round | Happening]:
        """Yield all rounds as they are counted now, and the happenings of those that are new."""
        for (owner, *traits, happened), counted in self._rounds.items():
            yield Round(counted.id, owner, counted.count, counted.first, counted.last, *traits)
            if counted.id in self._handed_over:
                continue
            self._handed_over.add(counted.id)
            for position, (each, times) in enumerate(happened):
                place = place_or_none(each.site)
                yield Happening(counted.id, position, each.deed, place, times, each.optimizers, each.marks)
