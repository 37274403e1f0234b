"""The training loop as events: backward passes and steps, and what is watched in between.

backward --> which leaves are reached --> optimizer pre-step: gradients, weights --> post-step: updates, step done
"""

from __future__ import annotations

import time
from threading import get_ident
from typing import TYPE_CHECKING

import torch

from whygrad.model import Step
from whygrad.probe import loop_events
from whygrad.probe.budget import Budget, Pace
from whygrad.probe.calm import Passed
from whygrad.probe.closeness import Closeness
from whygrad.probe.counting import Counts
from whygrad.probe.events import place_as_dict
from whygrad.probe.facts import merge_uses, resolve
from whygrad.probe.gradient_hooks import note_hooks
from whygrad.probe.graph import reached_leaves
from whygrad.probe.latecomers import Latecomers
from whygrad.probe.optimizers import TrackedOptimizer, held_tensors, is_within_own_step, learning_rates
from whygrad.probe.parameters import Tracked
from whygrad.probe.paths import merge_paths, note_lost_terms
from whygrad.probe.recording import measured
from whygrad.probe.source import Site, place_or_none
from whygrad.probe.variables import variable_name
from whygrad.stats.kernel import is_supported, sample_view

if TYPE_CHECKING:
    from whygrad.probe.session import Session

_clock = time.perf_counter

TRACED_STEPS = 3  # of each optimizer
RETRACED_STEPS = 2  # after a gradient has disappeared
MAX_TRACED_STEPS = 24  # in all: a program that makes optimizers for ever must not be traced for ever
MAX_WINDOW_S = 5.0  # of our own time between two steps: a program that never steps must not be watched for ever
CALM_AFTER = 1000  # steps
MAX_HOLDERS = 64  # optimizers of one parameter that are remembered: each round of training may make a new one
SAMPLE = 1024  # elements of a parameter that are compared


class Training:
    """Follows one program's training; one per session."""

    def __init__(self, session: Session, budget: Budget) -> None:
        self.steps = 0
        self.recorded_steps = 0
        self.traced_steps = 0
        self.backwards = 0
        self.grad_calls = 0
        self.recording = True
        self.closely = True  # the step that goes on is not only recorded
        self.compiled = False
        self._closeness = Closeness(always=session.options.trace_all)
        self._latecomers = Latecomers()
        self.counts = Counts(session.parameters)
        self._session = session
        self._budget = budget
        self._loss: float | None = None
        self._resolved = False
        self._asked = False
        self._retrace = 0  # steps to trace because a gradient disappeared
        self._window_began_s = 0.0  # of our own time
        self._closed_in = 0  # the thread in which nothing is watched since the last step; 0: something is
        self._pace = Pace()
        session.calm.on_end = self._make_up
        self._site: Site | None = None  # of the last backward pass

    # -- windows: what is watched until the next step ---------------------------------------------------------------

    def open_window(self) -> None:
        """Watch, or stop watching, until the next step."""
        self._window_began_s = self._session.guard.own_s
        watch_calls = self.recording and not self.compiled
        thread = 0 if watch_calls else get_ident()
        if thread and thread == self._closed_in:
            return
        self._closed_in = thread
        self._session.watch_calls(watch_calls)
        self._session.outputs.closely = self.closely or self._session.options.trace_all
        if watch_calls and self._wants_trace():
            self._session.tracer.switch_on()
        else:
            self._session.tracer.switch_off()
        self._session.nonfinite.switch(on=watch_calls and self.closely)

    def _wants_trace(self) -> bool:
        if self._session.options.trace_all:
            return True
        alive = [o for o in self._session.optimizers.alive() if o.ref() is not None]
        young = not alive or any(o.steps < TRACED_STEPS for o in alive)
        wanted = young or self.steps < TRACED_STEPS or self._retrace > 0
        return wanted and self.traced_steps < MAX_TRACED_STEPS

    def ask_for_trace(self) -> None:
        """Trace the next steps, once: something wrote weights, and nobody saw what."""
        if not self._asked:
            self._asked = True
            self._retrace = RETRACED_STEPS

    def check_window(self) -> None:
        """Stop watching where no step comes: a loop that only evaluates, or never calls `step()`, has seen enough."""
        if self._session.options.trace_all:
            return
        if self.recording and self._session.guard.own_s - self._window_began_s > MAX_WINDOW_S:
            self.recording = self.closely = False
            self._session.outputs.close_window()
            self._session.note("long stretches without an optimizer step were not watched throughout")
            self.open_window()

    def note_compiled(self) -> None:
        """Stop looking into modules: under torch.compile the probe must not change what is compiled."""
        if not self.compiled:
            self.compiled = True
            self._session.note("torch.compile is in use: outputs of modules and uses of parameters were not observed")
            self.open_window()

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
        self.check_window()
        self._session.nonfinite.before_backward(roots)
        if self.backwards == 0 or _is_power_of_two(self.backwards):
            self._note_moves()
        if self._loss is not None:
            self._closeness.note_loss(self._loss)
        if not self.closely:
            return
        if not self._resolved:
            self._resolved = True
            resolve(self._session, judge_stale=True)
        leaves = reached_leaves(roots)
        if leaves is None:
            self._session.note("the autograd graph has over a million nodes: it was not walked")
            return
        if not any(
            isinstance(leaf, torch.nn.Parameter) or self._session.parameters.get(leaf) for leaf in leaves.values()
        ):
            self._note_constant_loss(leaves)
        for leaf in leaves.values():
            entry = self._session.parameters.get(leaf) or self._new_leaf(leaf)
            if entry is not None:
                entry.reached += 1
        for entry in self._session.parameters.alive():
            entry.walked += 1
        self._session.guard.run("loop", loop_events.note_graph, self._session, roots, inputs, leaves)

    def _note_constant_loss(self, leaves: dict[int, torch.Tensor]) -> None:
        """Note where a loss that reaches no parameter was made: a stand-in that only looks like a loss."""
        for leaf in leaves.values():
            site = self._session.tracer.made_at(leaf)
            if site is not None:
                self._session.events.note("constant_loss", self.steps, site)

    def _may_be_calm(self, tracked: TrackedOptimizer, elapsed: float) -> bool:
        """Return whether the next steps may be passed over: following every one is over the budget."""
        session = self._session
        if self.recording or self.steps < CALM_AFTER or not tracked.is_plain or session.tracer.active:
            return False
        if session.replicas or session.scaling.is_used or len(session.optimizers.alive()) != 1:
            return False
        return self._budget.is_over(elapsed, self._pace.value)

    def _make_up(self, passed: Passed) -> None:
        """Take note of steps that were only counted."""
        self._session.guard.own_s += passed.own_s
        self._session.guard.run("steps", self._add_passed, passed)

    def _add_passed(self, passed: Passed) -> None:
        session = self._session
        tracked = session.optimizers.alive()[0]
        first, self.steps = self.steps, self.steps + passed.steps
        self.backwards += passed.backwards
        tracked.steps += passed.steps
        tracked.zero_grads += passed.clears
        self.counts.pass_over(tracked.id, first, passed.steps)
        session.events.repeat("backward", self.steps, self._site, passed.backwards)
        session.loop.resume()
        if passed.steps:
            self._note_rates(tracked.ref(), tracked, passed.steps)
            self._loss = passed.loss
            tracked.backwards = passed.backwards // passed.steps
            session.recorder.backlog.add_step(self._step_fact(tracked, self.steps - 1))
        tracked.backwards = passed.backwards_since_step
        if not passed.backwards_since_step:
            self._prepare_next(None)

    def _note_moves(self) -> None:
        """Count the values that changed without a step: a write through `.data` leaves no other trace."""
        stepped = {optimizer.id for optimizer in self._session.optimizers if optimizer.steps}
        for entry in self._session.parameters.alive():
            tensor = entry.ref()
            before, entry.sample = entry.sample, None
            if tensor is None or entry.changed_outside or not stepped.isdisjoint(entry.optimizers):
                continue
            if tensor.device.type != "cpu" or not is_supported(tensor):  # comparing would wait for an accelerator
                continue
            entry.sample = sample_view(tensor.detach(), SAMPLE).clone()
            if before is not None and before.shape == entry.sample.shape:
                entry.changed_outside += not torch.equal(before, entry.sample)

    def _new_leaf(self, leaf: torch.Tensor) -> Tracked | None:
        birth = self._session.parameters.birth(leaf)
        birth.passes += 1
        if isinstance(leaf, torch.nn.Parameter):
            resolve(self._session, judge_stale=True)
            found = self._session.parameters.get(leaf)
            return found or self._session.parameters.add_loose(leaf, variable_name(leaf, self._session.user))
        if birth.passes < 2 and len(self._session.optimizers):  # an input that requires grad lives for one pass
            return None
        return self._session.parameters.add_loose(leaf, variable_name(leaf, self._session.user))

    def after_backward(self, site: Site | None, roots: tuple[torch.Tensor, ...]) -> None:
        """Count a backward pass; where there is no optimizer, it is a step."""
        self.backwards += 1
        self._site = site
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
        tracked = self._session.optimizers.note_made(optimizer, site)
        self._link(held_tensors(optimizer), tracked)
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
        self._note_rates(optimizer, tracked)
        self._session.guard.run("rewriting", self._session.rewriting.after_step, tracked)
        self._session.guard.run(
            "loop", lambda: loop_events.after_step(self._session, tracked, site, closure=has_closure)
        )
        self._step(optimizer, tracked)

    def _note_rates(self, optimizer: torch.optim.Optimizer | None, tracked: TrackedOptimizer, steps: int = 1) -> None:
        if optimizer is not None:
            tracked.last_learning_rates = learning_rates(optimizer)
        tracked.zero_rate_steps += steps * all(rate == 0 for rate in tracked.last_learning_rates)
        self._session.groups.note_step(optimizer, tracked, steps)

    def _compare(self, optimizer: torch.optim.Optimizer, tracked: TrackedOptimizer) -> None:
        self._session.rewriting.before_step(optimizer, tracked, closely=self.closely)

    def _read(self, optimizer: torch.optim.Optimizer, tracked: TrackedOptimizer) -> None:
        held = held_tensors(optimizer)
        tracked.parameters = len(held)
        known = self.counts.known(tracked.id, held)
        if known is None or self.steps < 2 or _is_power_of_two(self.steps):
            known = None
            self._link(held, tracked)
            resolve(self._session, judge_stale=True)
            self._session.copies.link()
            self._session.guard.run("gradient hooks", note_hooks, self._session)
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

    def _link(self, held: list[torch.Tensor], tracked: TrackedOptimizer) -> None:
        for tensor in held:
            entry = self._session.parameters.add(tensor)
            if not entry.attribute and entry.is_nameless:
                entry.attribute = variable_name(tensor, self._session.user)
            if tracked.id not in entry.optimizers:
                entry.optimizers = [*entry.optimizers[-MAX_HOLDERS:], tracked.id]
                self._session.parameters.links += 1
        optimizer = tracked.ref()
        if optimizer is not None:
            self._session.groups.note_members(optimizer, tracked, self._number)

    def _number(self, tensor: torch.Tensor) -> int | None:
        entry = self._session.parameters.get(tensor)
        return None if entry is None else entry.id

    def _count(
        self, held: list[torch.Tensor], tracked: TrackedOptimizer | None, known: list[torch.Tensor] | None = None
    ) -> None:
        if self.counts.count(-1 if tracked is None else tracked.id, self.steps, held, known):
            self._retrace = RETRACED_STEPS

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
        self._session.recorder.backlog.add_step(self._step_fact(tracked, self.steps))
        self._advance(tracked)

    def _step_fact(self, tracked: TrackedOptimizer | None, number: int) -> Step:
        left = None if tracked is None else tracked.backward_norms
        return Step(
            id=number,
            optimizer=None if tracked is None else tracked.id,
            time_s=_clock() - self._session.began,
            backwards=1 if tracked is None else tracked.backwards,
            loss=self._loss,
            learning_rates=() if tracked is None else tracked.last_learning_rates,
            recorded=self.recording,
            backward_l2=None if left is None else left.total,
        )

    def _advance(self, tracked: TrackedOptimizer | None) -> None:
        self.steps += 1
        if tracked is not None:
            tracked.steps += 1
            tracked.backwards = 0
            tracked.backward_norms = None
        if self._session.tracer.active:
            self.traced_steps += 1
            self._retrace = max(0, self._retrace - 1)
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
        self.closely = self.recording and self._closeness.wants()
        self.open_window()
        self._session.losses.end_step()
        if elapsed - self._session.flushed > self._session.flush_s or _is_power_of_two(self.steps):
            self._session.write()
        optimizer = None if tracked is None else tracked.ref()
        if tracked is not None and optimizer is not None and not was_recorded and self._may_be_calm(tracked, elapsed):
            self._session.calm.begin(optimizer, elapsed / self.steps)


def _value(loss: torch.Tensor) -> float | None:
    """Return the loss as a number, where reading it does not make the program wait for an accelerator."""
    if loss.numel() != 1 or loss.device.type != "cpu" or loss.is_complex():
        return None
    return float(loss.detach())


def _is_power_of_two(number: int) -> bool:
    return number > 0 and number & (number - 1) == 0
