"""When steps are passed over (see `calm`), and how their counts get to where those of followed steps are."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from whygrad.model import Step
from whygrad.probe.calm import Kept, Passed
from whygrad.probe.optimizers import TrackedOptimizer, note_rates, rates_of

if TYPE_CHECKING:
    from whygrad.probe.session import Session

_clock = time.perf_counter

CALM_AFTER = 1000  # steps
MAX_OPTIMIZERS = 8
MAX_WAIT = 256  # steps: an optimizer that makes no more of them does not keep the others from calm


def may_be_calm(session: Session, followed: int) -> bool:
    """Return whether nothing stands against passing steps over, but perhaps the budget.

    Args:
        session: Whose.
        followed: Steps that were followed since the last ones that were passed over.
    """
    training, alive = session.training, session.optimizers.alive()
    if training.recording or training.steps < CALM_AFTER or session.tracer.active or followed < session.calm.pause:
        return False
    if session.replicas or session.world_size > 1 or session.scaling.is_used or not 0 < len(alive) <= MAX_OPTIMIZERS:
        return False
    return all(tracked.is_plain for tracked in alive) and (session.loop.is_known() or followed >= MAX_WAIT)


def add_passed(session: Session, passed: Passed) -> None:
    """Count what was passed over."""
    training = session.training
    first, steps = training.steps, passed.steps.total()
    if steps:  # what the last backward pass showed belongs to the step that it was made for
        training.steps += steps - 1
        session.nonfinite.after_backward()
        training.steps += 1
    training.backwards += passed.backwards
    session.events.share_out("backward", training.steps, passed.backwards)
    owners = _owners(session)
    for kept in passed.kept:
        if kept.optimizer in owners:
            session.recorder.arrivals.add_step(_row(session, owners[kept.optimizer], passed, kept, first))
    for tracked in owners.values():
        _add_steps(session, tracked, passed, first)
    last = owners.get(passed.kept[-1].optimizer) if passed.at_step and passed.kept else None
    session.loop.resume(None if last is None else last.id)


def _row(session: Session, tracked: TrackedOptimizer, passed: Passed, kept: Kept, first: int) -> Step:
    return Step(
        id=first + kept.number,
        optimizer=tracked.id,
        time_s=_clock() - session.began,
        backwards=passed.backwards // passed.steps[kept.optimizer],
        loss=kept.loss,
        learning_rates=rates_of(kept.rates) or tracked.last_learning_rates,
        position=tracked.steps + kept.own - 1,
    )


def _owners(session: Session) -> dict[int, TrackedOptimizer]:
    """Return the optimizers by identity; of two with the same one, the one that is there."""
    alive = session.optimizers.alive()
    gone = {tracked.key: tracked for tracked in alive if tracked.ref() is None}
    return gone | {tracked.key: tracked for tracked in alive if tracked.ref() is not None}


def _add_steps(session: Session, tracked: TrackedOptimizer, passed: Passed, first: int) -> None:
    steps = passed.steps[tracked.key]
    tracked.zero_grads += passed.clears[tracked.key]
    if not steps:
        tracked.backwards += passed.backwards
        return
    tracked.steps += steps
    tracked.backwards = passed.backwards_since_step
    # In the middle of a step a scheduler has set the rate of the next one already.
    note_rates(session.groups, tracked.ref() if passed.at_step else None, tracked, steps)
    session.training.counts.pass_over(tracked.id, steps, first=first, last=session.training.steps - 1)
    session.loop.pass_over(tracked, steps, session.training.steps - 1)
    session.rewriting.forget(tracked)
