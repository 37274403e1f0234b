"""What happened besides the steps: clips, skipped steps, rounds that look different from the ones before.

step 12: the loop of `optimizer` changes to clear, backward x2, clip, step
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby

from whygrad.evidence import Evidence
from whygrad.model import Clip, Happening
from whygrad.report.writing import number, plural, where

MOST = 200
_TOLD = ("nonfinite", "weight", "optimizer_loaded")  # beginnings of event kinds


@dataclass(frozen=True, slots=True)
class Moment:
    """One line of text, and the step to mark; None where it is not one step's."""

    step: int | None
    text: str


def moments(evidence: Evidence) -> list[Moment]:
    """Return what happened, in the order of its first step; what belongs to no step first."""
    found = [*_clips(evidence), *_rounds(evidence), *_events(evidence)]
    return sorted(found, key=lambda moment: -1 if moment.step is None else moment.step)[:MOST]


def _clips(evidence: Evidence) -> Iterator[Moment]:
    for clip in evidence.clips:
        at = "" if clip.place is None else f" at {where(clip.place)}"
        yield Moment(None, _clipped(clip) + at)


def _clipped(clip: Clip) -> str:
    limit = "" if clip.limit is None else f" to {number(clip.limit)}"
    factor = "" if clip.factor is None else f", by {clip.factor:.3g}x on average"
    share = f": {clip.clipped} of {plural(clip.measured, 'call')} were above" if clip.measured else ""
    return f"gradients clipped by {clip.kind}{limit}{share}{factor}"


def _rounds(evidence: Evidence) -> Iterator[Moment]:
    order = sorted(evidence.happenings, key=lambda happening: (happening.round, happening.position))
    told = {number: _told(list(group)) for number, group in groupby(order, key=lambda happening: happening.round)}
    for each in evidence.rounds:
        optimizer = evidence.optimizer_by_id.get(each.optimizer)
        if each.first or not each.first_step or optimizer is None or each.id not in told:
            continue
        times = "" if each.count == 1 else f", {plural(each.count, 'time')} until step {each.last_step}"
        yield Moment(each.first_step, f"the loop of {optimizer.name} is {told[each.id]}{times}")


def _told(happenings: list[Happening]) -> str:
    return ", ".join(h.deed.value + (f" x{h.times}" if h.times > 1 else "") for h in happenings)


def _events(evidence: Evidence) -> Iterator[Moment]:
    for event in evidence.events:
        if event.kind.startswith(_TOLD):
            at = f" at {where(event.place)}" if event.place is not None else ""
            times = "" if event.count == 1 else f", {plural(event.count, 'time')} until step {event.last_step}"
            subject = f" {event.subject}" if event.subject else ""
            yield Moment(event.first_step, f"{event.kind.replace('_', ' ')}{subject}{at}{times}")
