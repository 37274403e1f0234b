"""The session: switches the probe on and off, and owns the steps.

    backward --> which leaves are reached --> optimizer pre-step: gradients, weights --> post-step: updates, step done

One session is active per process. Everything it installs is undone by `finish`.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import torch

from whygrad.model import Raised, Step
from whygrad.probe.budget import Budget
from whygrad.probe.events import EventLog
from whygrad.probe.facts import find_unreached_steps, merge_uses, resolve, run_info, write_facts
from whygrad.probe.graph import reached_leaves
from whygrad.probe.guard import Guard
from whygrad.probe.modules import ModuleRegistry, holder_name
from whygrad.probe.optimizers import OptimizerTable, TrackedOptimizer, held_tensors, learning_rates
from whygrad.probe.outputs import OutputRecorder, version_of
from whygrad.probe.parameters import ParameterTable, Tracked
from whygrad.probe.reads import describe_read, describe_warning
from whygrad.probe.recording import Recorder, measured
from whygrad.probe.source import Site, UserCode, place_or_none
from whygrad.probe.trace import Tracer
from whygrad.runfile.writer import RunWriter

_clock = time.perf_counter

TRACED_STEPS = 3  # of each optimizer
MAX_TRACED_STEPS = 24  # in all: a program that makes optimizers for ever must not be traced for ever
FLUSH_S = 2.0


_active: Session | None = None


def active_session() -> Session | None:
    """Return the session that watches this process, or None."""
    return _active


@dataclass(frozen=True, slots=True)
class SessionOptions:
    """What a session needs to know."""

    folder: Path  # of the run; made if missing
    script: str
    argv: tuple[str, ...] = ()
    every: int | None = None  # record every N-th round of steps; None: within the budget
    overhead: float = 0.02  # share of the run's time
    rank: int = 0
    world_size: int = 1


class Session:
    """Watches this process from `start` to `finish`."""

    def __init__(self, options: SessionOptions) -> None:
        self.options = options
        self.path = options.folder / f"rank{options.rank}.whygrad"
        self.guard = Guard()
        self.user = UserCode(options.script)
        self.registry = ModuleRegistry(self.user)
        self.parameters = ParameterTable(self.registry, self.user)
        self.optimizers = OptimizerTable(self.user)
        self.outputs = OutputRecorder(self.registry, self.guard)
        self.events = EventLog()
        self.tracer = Tracer(
            self.user, self.guard, lambda: self.outputs.depth > 0, self.note_intermediate_read, self.note_frozen
        )
        self.budget = Budget(options.overhead, options.every)
        self.notes: list[str] = []
        self.refused: set[str] = set()  # kinds of tensors that have no statistics
        self.recorded_steps = 0
        self.steps = 0
        self.traced_steps = 0
        self.backwards = 0
        self.grad_calls = 0
        self.walks = 0
        self.recording = True
        self.compiled = False
        self._loss: float | None = None
        self._loose: dict[int, int] = {}  # id of a leaf outside all modules -> backward passes that reached it
        self.began = _clock()
        self.started_utc = datetime.now(UTC).isoformat(timespec="seconds")
        self._flushed = 0.0
        self._resolved = False
        self.pid = os.getpid()
        self._undo: Callable[[], None] = lambda: None
        self._finished = False

    # -- life ---------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Open the run file and switch the probe on.

        Raises:
            OSError: The run folder can't be written.
            RuntimeError: A session is active already.
        """
        global _active
        if _active is not None:
            msg = "a session is active already"
            raise RuntimeError(msg)
        from whygrad.probe.installation import install

        self.options.folder.mkdir(parents=True, exist_ok=True)
        self.recorder = Recorder(RunWriter(self.path, run_info(self)), self.refused)
        self._undo = install(self)
        _active = self
        self._open_window()

    def abandon(self) -> None:
        """Forget everything without writing: called in a forked child, which is not the program that is watched."""
        self._finished = True
        self._take_out()

    def _take_out(self) -> None:
        global _active
        _active = None
        self.tracer.switch_off()
        self._undo()

    def finish(self, error: BaseException | None = None) -> None:
        """Switch the probe off and complete the run file.

        Args:
            error: The exception that ended the program, if one did.
        """
        if self._finished or os.getpid() != self.pid:
            return
        self._finished = True
        self._take_out()
        for last in (
            lambda: resolve(self, judge_stale=False),
            lambda: merge_uses(self),
            lambda: find_unreached_steps(self),
        ):
            self.guard.run("names", last)
        self.guard.run("facts", lambda: write_facts(self, ended=True, raised=self._raised(error)))
        self.guard.run("run file", self.recorder.writer.close)

    def _raised(self, error: BaseException | None) -> Raised | None:
        if error is None:
            return None
        site = self.user.of_traceback(error.__traceback__)
        return Raised(type(error).__name__, str(error), place_or_none(site))

    def note(self, text: str) -> None:
        """Add what could not be observed, once."""
        if text not in self.notes:
            self.notes.append(text)

    def all_notes(self) -> tuple[str, ...]:
        """Return what was not observed, and which parts were switched off after an error of their own."""
        failed = (f"whygrad's {part} were switched off: {why}" for part, why in self.guard.failures.items())
        return (*self.notes, *sorted(self.refused), *failed)

    # -- windows: what is watched until the next step ---------------------------------------------------------------

    def _open_window(self) -> None:
        watch_calls = self.recording and not self.compiled
        self.watch_calls(watch_calls)
        if watch_calls and self._wants_trace():
            self.tracer.switch_on()
        else:
            self.tracer.switch_off()

    def watch_calls(self, on: bool) -> None:
        """Switch the observation of module calls; set by the installation."""

    def _wants_trace(self) -> bool:
        young = not len(self.optimizers) or any(o.steps < TRACED_STEPS for o in self.optimizers if o.ref() is not None)
        return self.traced_steps < MAX_TRACED_STEPS and (self.steps < TRACED_STEPS or young)

    def note_compiled(self) -> None:
        """Stop looking into modules: under torch.compile the probe must not change what is compiled."""
        if not self.compiled:
            self.compiled = True
            self.note("torch.compile is in use: outputs of modules and uses of parameters were not observed")
            self._open_window()

    # -- backward ---------------------------------------------------------------------------------------------------

    def before_backward(self, roots: tuple[torch.Tensor, ...]) -> None:
        """Look at the graph that a backward pass is about to run through."""
        self._loss = _value(roots[0]) if roots else None
        if not self.recording:
            return
        if not self._resolved:
            self._resolved = True
            resolve(self, judge_stale=True)
        leaves = reached_leaves(roots)
        if leaves is None:
            self.note("the autograd graph has over a million nodes: it was not walked")
            return
        self.walks += 1
        for leaf in leaves.values():
            entry = self.parameters.get(leaf) or self._new_leaf(leaf)
            if entry is not None:
                entry.reached += 1
        for entry in self.parameters:
            entry.walked += 1

    def _new_leaf(self, leaf: torch.Tensor) -> Tracked | None:
        times = self._loose[id(leaf)] = self._loose.get(id(leaf), 0) + 1
        if isinstance(leaf, torch.nn.Parameter):
            resolve(self, judge_stale=True)
            found = self.parameters.get(leaf)
            return found or self.parameters.add_loose(leaf, holder_name(leaf, self.user) or "")
        if times < 2 and len(self.optimizers):  # an input that requires grad lives for one pass
            return None
        return self.parameters.add_loose(leaf, holder_name(leaf, self.user) or "")

    def after_backward(self, site: Site | None, roots: tuple[torch.Tensor, ...]) -> None:
        """Count a backward pass; where there is no optimizer, it is a step."""
        self.backwards += 1
        root = roots[0] if roots else None
        grad_fn = root.grad_fn.name() if root is not None and root.grad_fn is not None else ""
        self.events.note("backward", self.steps, site, grad_fn=grad_fn, loss=self._loss)
        if self._loss is not None and self._loss - self._loss != 0:
            self.events.note("nonfinite_loss", self.steps, site, value=str(self._loss))
        for optimizer in self.optimizers:
            optimizer.backwards += 1
        if not len(self.optimizers):
            self._step(None, None)

    # -- optimizers and steps ---------------------------------------------------------------------------------------

    def note_optimizer(self, optimizer: torch.optim.Optimizer, site: Site | None) -> None:
        """Remember a new optimizer and what it holds, though it may never step."""
        self._link(held_tensors(optimizer), self.optimizers.note_made(optimizer, site))

    def before_step(self, optimizer: torch.optim.Optimizer, has_closure: bool) -> None:
        """Read what the optimizer is about to use, unless a closure computes it inside the step."""
        tracked = self.optimizers.get(optimizer)
        tracked.depth += 1
        if tracked.depth > 1:
            return
        if tracked.steps == 0:
            self.optimizers.name(optimizer)
        if not has_closure:
            self.tracer.paused = True
            self._read(optimizer, tracked)

    def after_step(self, optimizer: torch.optim.Optimizer, has_closure: bool, site: Site | None) -> None:
        """Complete a step."""
        tracked = self.optimizers.get(optimizer)
        tracked.depth -= 1
        if tracked.depth > 0:
            return
        self.tracer.paused = False
        if has_closure:
            self._read(optimizer, tracked)
            self.recorder.drop_samples()
        tracked.stepped = site or tracked.stepped
        tracked.last_learning_rates = learning_rates(optimizer)
        tracked.zero_rate_steps += all(rate == 0 for rate in tracked.last_learning_rates)
        self._step(optimizer, tracked)

    def _read(self, optimizer: torch.optim.Optimizer, tracked: TrackedOptimizer) -> None:
        held = held_tensors(optimizer)
        tracked.parameters = len(held)
        known = [self.parameters.get(tensor) for tensor in held]
        if None in known or tracked.steps < 2 or _is_power_of_two(tracked.steps):
            self._link(held, tracked)
            resolve(self, judge_stale=True)
        self._count(held)
        if self.recording:
            self.recorder.gradients(self.steps, measured(self.parameters, tracked))

    def _link(self, held: list[torch.Tensor], tracked: TrackedOptimizer) -> None:
        for tensor in held:
            entry = self.parameters.add(tensor)
            if tracked.id not in entry.optimizers:
                entry.optimizers.append(tracked.id)

    def _count(self, held: list[torch.Tensor]) -> None:
        ids = {id(tensor) for tensor in held}
        for entry in self.parameters:
            tensor = entry.ref()
            if tensor is None or (id(tensor) not in ids and entry.optimizers):
                continue
            entry.steps += 1
            entry.requires_grad = tensor.requires_grad
            entry.frozen_steps += not tensor.requires_grad
            if tensor.grad is not None:
                entry.gradient_steps += 1
                entry.last_gradient_step = self.steps
                if entry.first_gradient_step is None:
                    entry.first_gradient_step = self.steps
            version = version_of(tensor)
            entry.changed_outside += entry.version is not None and version != entry.version
            entry.version = version

    def _step(self, optimizer: torch.optim.Optimizer | None, tracked: TrackedOptimizer | None) -> None:
        if tracked is None:
            self._count([])
            if self.recording:
                self.recorder.updates(self.steps - 1)
                self.recorder.gradients(self.steps, measured(self.parameters, None))
        elif self.recording:
            self.recorder.updates(self.steps)
        if optimizer is not None:
            for tensor in held_tensors(optimizer):
                entry = self.parameters.get(tensor)
                if entry is not None:
                    entry.version = version_of(tensor)
        rows = self.outputs.close_window()
        if self.recording:
            self.recorder.outputs(self.steps, rows)
        self.recorded_steps += self.recording
        self.recorder.writer.add_step(self._step_fact(tracked))
        self._advance(tracked)

    def _step_fact(self, tracked: TrackedOptimizer | None) -> Step:
        return Step(
            id=self.steps,
            optimizer=None if tracked is None else tracked.id,
            time_s=_clock() - self.began,
            backwards=1 if tracked is None else tracked.backwards,
            loss=self._loss,
            learning_rates=() if tracked is None else tracked.last_learning_rates,
            recorded=self.recording,
        )

    def _advance(self, tracked: TrackedOptimizer | None) -> None:
        self.steps += 1
        if tracked is not None:
            tracked.steps += 1
            tracked.backwards = 0
        if self.tracer.active:
            self.traced_steps += 1
            merge_uses(self)
        elapsed = _clock() - self.began
        self.recording = self.budget.record_next(
            steps_done=self.steps,
            optimizers=sum(o.ref() is not None for o in self.optimizers),
            own_s=self.guard.own_s,
            elapsed_s=elapsed,
        )
        self._open_window()
        if elapsed - self._flushed > FLUSH_S or _is_power_of_two(self.steps):
            self._write()

    def adopt_model(self, model: torch.nn.Module) -> None:
        """Name and count a model that was made before the session began."""
        self.guard.run("modules", self._adopt_model, model)

    def _adopt_model(self, model: torch.nn.Module) -> None:
        self.registry.note_call(model)
        for inner in model.modules():
            self.registry.note(inner)
        resolve(self, judge_stale=True)

    def adopt_optimizer(self, optimizer: torch.optim.Optimizer) -> None:
        """Count an optimizer that was made before the session began."""
        self.guard.run("optimizers", self._adopt_optimizer, optimizer)

    def _adopt_optimizer(self, optimizer: torch.optim.Optimizer) -> None:
        self.note_optimizer(optimizer, None)
        self.optimizers.name(optimizer)

    # -- facts ------------------------------------------------------------------------------------------------------

    def note_intermediate_read(self, tensor: torch.Tensor, site: Site | None) -> None:
        """Remember who read `.grad` of an intermediate that keeps none."""
        describe_read(self, tensor, site)

    def note_intermediate_warning(self, file: str, line: int) -> None:
        """Remember the line that torch warned about reading `.grad` of an intermediate."""
        describe_warning(self, file, line)

    def note_frozen(self, tensor: torch.Tensor, site: Site | None) -> None:
        """Remember the line that switched `requires_grad` off."""
        entry = self.parameters.get(tensor) or self.parameters.birth(tensor)
        entry.frozen = site

    def flush(self) -> None:
        """Bring the run file up to date, for a report while the program goes on."""
        self.guard.run("flush", self._write)

    def _write(self) -> None:
        self._flushed = _clock() - self.began
        write_facts(self)


def _value(loss: torch.Tensor) -> float | None:
    """Return the loss as a number, where reading it does not make the program wait for an accelerator."""
    if loss.numel() != 1 or loss.device.type != "cpu" or loss.is_complex():
        return None
    return float(loss.detach())


def _is_power_of_two(number: int) -> bool:
    return number > 0 and number & (number - 1) == 0


def _cwd() -> str:
    try:
        return str(Path.cwd())
    except OSError:
        return ""
