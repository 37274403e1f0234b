"""When steps are passed over (see `calm`), and how their counts get to where those of followed steps are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from whygrad.probe.calm import Passed
from whygrad.probe.optimizers import TrackedOptimizer, note_rates
from whygrad.probe.source import Site

if TYPE_CHECKING:
    from whygrad.probe.session import Session

CALM_AFTER = 1000  # steps
MAX_OPTIMIZERS = 8


def may_be_calm(session: Session) -> bool:
    """Return whether nothing stands against passing steps over, but perhaps the budget."""
    training, alive = session.training, session.optimizers.alive()
    if training.recording or training.steps < CALM_AFTER or session.tracer.active:
        return False
    if session.replicas or session.scaling.is_used or not 0 < len(alive) <= MAX_OPTIMIZERS:
        return False
    return all(tracked.is_plain for tracked in alive)


def add_passed(session: Session, passed: Passed, site: Site | None) -> TrackedOptimizer | None:
    """Count what was passed over; `site` is the line of its backward passes.

    Returns:
        The optimizer that made the last step.
    """
    training = session.training
    first, steps = training.steps, passed.steps.total()
    training.steps += steps
    training.backwards += passed.backwards
    session.events.repeat("backward", training.steps, site, passed.backwards)
    last = None
    for tracked in session.optimizers.alive():
        _add_steps(session, tracked, passed, first)
        last = tracked if steps and tracked.key == passed.last else last
    session.loop.resume()
    return last


def _add_steps(session: Session, tracked: TrackedOptimizer, passed: Passed, first: int) -> None:
    steps = passed.steps[tracked.key]
    tracked.zero_grads += passed.clears[tracked.key]
    tracked.backwards = passed.backwards_since_step
    if steps:
        tracked.steps += steps
        note_rates(session.groups, tracked.ref(), tracked, steps)
        session.training.counts.pass_over(tracked.id, steps, first=first, last=session.training.steps - 1)
