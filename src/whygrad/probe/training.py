"""The training loop as events: backward passes and steps, and what is watched in between.

backward --> which leaves are reached --> optimizer pre-step: gradients, weights --> post-step: updates, step done
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import torch

from whygrad.model import Step
from whygrad.probe import loop_events
from whygrad.probe.budget import Budget, Pace
from whygrad.probe.calm import Passed
from whygrad.probe.closeness import Closeness
from whygrad.probe.counting import Counts
from whygrad.probe.doubling import Doubling
from whygrad.probe.events import place_as_dict
from whygrad.probe.facts import merge_uses
from whygrad.probe.latecomers import Latecomers
from whygrad.probe.lookups import Lookups
from whygrad.probe.optimizers import TrackedOptimizer, held_tensors, is_within_own_step, note_rates
from whygrad.probe.passed_steps import add_passed, may_be_calm
from whygrad.probe.paths import merge_paths, note_lost_terms
from whygrad.probe.reached import note_moves, note_reached
from whygrad.probe.recording import measured
from whygrad.probe.source import Site, place_or_none
from whygrad.probe.windows import Windows

if TYPE_CHECKING:
    from whygrad.probe.session import Session

_clock = time.perf_counter


class Training:
    """Follows one program's training; one per session."""

    def __init__(self, session: Session, budget: Budget) -> None:
        self.steps = 0
        self.recorded_steps = 0
        self.backwards = 0
        self.grad_calls = 0
        self.recording = True
        self.closely = True  # the step that goes on is not only recorded
        self.windows = Windows(session)
        self.counts = Counts(session.parameters)
        self._session = session
        self._budget = budget
        self._pace = Pace()
        self._closeness = Closeness(session.options.trace_all, by_budget=budget.every is None)
        self._latecomers = Latecomers()
        self._lookups = Lookups(session)
        self._loss: float | None = None
        self._moves, self._names, self._writes = Doubling(), Doubling(), Doubling()
        self._followed = 0  # steps since the last ones that were passed over
        session.calm.on_end = self._make_up

    def begin(self) -> None:
        """Take note of what it took to get ready."""
        self._budget.begin(self._session.guard.own_s)

    # -- backward ---------------------------------------------------------------------------------------------------

    def before_backward(self, roots: tuple[torch.Tensor, ...], inputs: tuple[torch.Tensor, ...] | None) -> None:
        """Look at the graph that a backward pass is about to run through."""
        self._session.tracer.note_backward(roots, inputs)
        self._session.outputs.note_backward()
        self._session.guard.run("loop", loop_events.before_backward, self._session)
        if self._session.replicas:
            self._session.guard.run("replicas", self._session.replicas.before_backward)
        root = roots[0] if roots else None
        loss = None if root is None else _value(root)
        self._loss = self._session.guard.run("loop", loop_events.unscaled_loss, self._session, loss, root)
        self.windows.check()
        self._session.nonfinite.before_backward(roots)
        if self._moves.is_due(self.backwards):
            note_moves(self._session)
        if self._loss is not None and self.recording:
            self._closeness.note_loss(self._loss)
        if self.closely:
            note_reached(self._session, roots, inputs)

    def after_backward(self, site: Site | None, roots: tuple[torch.Tensor, ...]) -> None:
        """Count a backward pass; where there is no optimizer, it is a step."""
        self.backwards += 1
        if self._session.replicas:
            self._session.guard.run("replicas", self._session.replicas.after_backward, site)
        self._session.nonfinite.after_backward()
        self._session.losses.after_backward(roots)
        self._session.journal.note_pass(roots, site, self.steps, walk=self._session.tracer.active)
        root = roots[0] if roots else None
        grad_fn = root.grad_fn.name() if root is not None and root.grad_fn is not None else ""
        traced = self._session.tracer.active and root is not None
        made = place_as_dict(place_or_none(self._session.tracer.made_at(root))) if traced and root is not None else None
        self._session.events.note("backward", self.steps, site, grad_fn=grad_fn, loss=self._loss, made_at=made)
        if self._loss is not None and self._loss - self._loss != 0:
            self._session.events.note("nonfinite_loss", self.steps, site, value=str(self._loss))
        for optimizer in self._session.optimizers.alive():
            optimizer.backwards += 1
        self._session.guard.run("loop", loop_events.after_backward, self._session, site, root)
        if self._session.by_hand.is_step(site) or not len(self._session.optimizers):
            self._step(None, None)

    # -- optimizers and steps ---------------------------------------------------------------------------------------

    def note_optimizer(self, optimizer: torch.optim.Optimizer, site: Site | None) -> None:
        """Remember a new optimizer and what it holds, though it may never step."""
        self._session.calm.end()
        tracked = self._session.optimizers.note_made(optimizer, site)
        if self._lookups.wants(tracked):
            self._lookups.link(held_tensors(optimizer), tracked)
        self._session.guard.run("loop", self._session.loop.follow, optimizer, tracked)

    def before_step(self, optimizer: torch.optim.Optimizer, has_closure: bool) -> bool:
        """Read what the optimizer is about to use, unless a closure computes it inside the step.

        Returns:
            False where the step is part of another one of the same optimizer.
        """
        tracked = self._session.optimizers.get(optimizer)
        if tracked.depth and not is_within_own_step(optimizer):
            tracked.depth = 0  # an earlier step raised, and the program went on
        tracked.depth += 1
        tracked.is_plain = tracked.depth == 1 and not has_closure
        if tracked.depth > 1:
            return False
        if tracked.steps == 0:
            self._session.optimizers.name(optimizer)
        self._session.tracer.paused = True
        tracked.is_read = not has_closure
        if not has_closure:
            self._read(optimizer, tracked)
        self._session.guard.run("loop", loop_events.before_step, self._session, optimizer, tracked)
        self._session.guard.run("rewriting", self._compare, optimizer, tracked)
        return True

    def before_closure(self, _optimizer: torch.optim.Optimizer) -> None:
        """Watch the program again, which computes a loss inside of a step."""
        self._session.tracer.paused = False

    def after_closure(self, optimizer: torch.optim.Optimizer) -> None:
        """Read what the optimizer is about to use, after the first call of its closure."""
        self._session.tracer.paused = True
        tracked = self._session.optimizers.get(optimizer)
        if not tracked.is_read:
            tracked.is_read = True
            self._read(optimizer, tracked)

    def after_step(self, optimizer: torch.optim.Optimizer, has_closure: bool, site: Site | None) -> None:
        """Complete a step."""
        tracked = self._session.optimizers.get(optimizer)
        tracked.depth -= 1
        if tracked.depth > 0:
            return
        self._session.tracer.paused = False
        if not tracked.is_read:  # the closure was never called
            self._read(optimizer, tracked)
            self._session.recorder.drop_samples()
        tracked.stepped = site or tracked.stepped
        note_rates(self._session.groups, optimizer, tracked)
        self._session.guard.run("rewriting", self._session.rewriting.after_step, tracked)
        self._session.guard.run(
            "loop", lambda: loop_events.after_step(self._session, tracked, site, closure=has_closure)
        )
        self._step(optimizer, tracked)

    def _compare(self, optimizer: torch.optim.Optimizer, tracked: TrackedOptimizer) -> None:
        self._session.rewriting.before_step(optimizer, tracked, closely=self.closely)

    def _read(self, optimizer: torch.optim.Optimizer, tracked: TrackedOptimizer) -> None:
        held = held_tensors(optimizer)
        tracked.parameters = len(held)
        known = self.counts.known(tracked.id, held)
        is_new = known is None and self._lookups.wants(tracked)
        if is_new or self.steps < 2 or self._names.is_due(self.steps):
            known = None
            self._lookups.look(held, tracked)
        self._count(held, tracked, known)
        if self.recording:
            chosen = measured(self._session.parameters.alive(), tracked)
            with self._pace:
                same = self._session.recorder.gradients(self.steps, chosen, tracked.backward_norms)
            if tracked.backward_norms is not None:
                tracked.is_changed = not same
            if self.closely:
                self._session.guard.run("symmetry", self._session.symmetry.look, self.steps, chosen)
        if self._session.tracer.active:
            # of all, not only of what this optimizer holds: the next one may step on the same backward pass
            self._session.guard.run("paths", merge_paths, self._session, self._session.parameters.alive())
            self._session.guard.run("paths", note_lost_terms, self._session)

    def _count(
        self, held: list[torch.Tensor], tracked: TrackedOptimizer | None, known: list[torch.Tensor] | None = None
    ) -> None:
        if self.counts.count(-1 if tracked is None else tracked.id, self.steps, held, known):
            self.windows.trace_again()

    def _step(self, optimizer: torch.optim.Optimizer | None, tracked: TrackedOptimizer | None) -> None:
        if tracked is None:
            self._count([], None)
            if self.recording:
                self._session.recorder.updates(self.steps - 1)
                self._session.recorder.gradients(self.steps, measured(self._session.parameters.alive(), None))
            if self._session.tracer.active:
                self._session.guard.run("paths", merge_paths, self._session, self._session.parameters.alive())
        elif self.recording:
            self._session.recorder.updates(self.steps)
        if optimizer is not None and tracked is not None:
            self._session.guard.run("replicas", self._session.replicas.note_step, optimizer, tracked)
            self.counts.note_step(tracked.id, held_tensors(optimizer))
        rows = self._session.outputs.close_window()
        if self.recording:
            self._session.recorder.outputs(self.steps, rows)
        self.recorded_steps += self.recording
        self._session.recorder.arrivals.add_step(self._step_fact(tracked))
        self._advance(tracked)

    def _step_fact(self, tracked: TrackedOptimizer | None) -> Step:
        left = None if tracked is None else tracked.backward_norms
        return Step(
            id=self.steps,
            optimizer=None if tracked is None else tracked.id,
            time_s=_clock() - self._session.began,
            backwards=1 if tracked is None else tracked.backwards,
            loss=self._loss,
            learning_rates=() if tracked is None else tracked.last_learning_rates,
            recorded=self.recording,
            position=None if tracked is None else tracked.steps,
            backward_l2=None if left is None else left.total,
        )

    def _advance(self, tracked: TrackedOptimizer | None) -> None:
        self.steps += 1
        if tracked is not None:
            tracked.steps += 1
            tracked.backwards = 0
            tracked.backward_norms = None
        if self._session.tracer.active:
            self.windows.note_traced_step()
            merge_uses(self._session)
            self._session.tracer.forget()
        self._latecomers.note_step(tracked, recorded=self.recording)
        self._prepare_next(tracked)

    def _prepare_next(self, tracked: TrackedOptimizer | None) -> None:
        """Decide how the next step is looked at; `tracked` is the optimizer whose step was followed."""
        elapsed = _clock() - self._session.began
        was_recorded = self.recording
        self.recording = self._budget.record_next(
            steps_done=self.steps,
            optimizers=sum(o.ref() is not None for o in self._session.optimizers.alive()),
            own_s=self._session.guard.own_s,
            elapsed_s=elapsed,
            pace=self._pace.value,
        )
        if not self.recording and self._budget.every is None:
            self.recording = self._latecomers.want(self._session.optimizers.alive())
        self.closely = self.recording and self._closeness.wants(self._session.guard.own_s - self._session.start_s)
        self.windows.open()
        self._session.losses.end_step()
        if elapsed - self._session.flushed > self._session.flush_s or self._writes.is_due(self.steps):
            self._session.write()
        if tracked is not None:
            self._followed += 1
            if not was_recorded and may_be_calm(self._session, self._followed):
                self._begin_calm(elapsed)

    # -- steps that are only counted --------------------------------------------------------------------------------

    def _begin_calm(self, elapsed: float) -> None:
        """Pass over the next steps, if following every one is over the budget."""
        if self._budget.is_over(elapsed, self._pace.value):
            self._followed = 0
            self._session.calm.on_backward = self._session.nonfinite.look_at_loss()
            alive = (tracked.ref() for tracked in self._session.optimizers.alive())
            self._session.calm.begin([o for o in alive if o is not None], elapsed / self.steps)

    def _make_up(self, passed: Passed) -> None:
        self._session.guard.own_s += passed.own_s
        self._session.guard.run("steps", self._add_passed, passed)

    def _add_passed(self, passed: Passed) -> None:
        add_passed(self._session, passed)
        if passed.at_step:
            self._prepare_next(None)


def _value(loss: torch.Tensor) -> float | None:
    """Return the loss as a number, where reading it does not make the program wait for an accelerator."""
    if loss.numel() != 1 or loss.device.type != "cpu" or loss.is_complex():
        return None
    return float(loss.detach())
