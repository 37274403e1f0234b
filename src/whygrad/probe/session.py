"""The session: switches the probe on and off, and holds its tables.

One session is active per process. Everything it installs is undone by `finish`.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch

from whygrad.model import Raised
from whygrad.probe.activations import ActivationRecorder
from whygrad.probe.arrivals import Arrivals
from whygrad.probe.backlog import Backlog
from whygrad.probe.budget import Budget
from whygrad.probe.by_hand import ByHand
from whygrad.probe.calm import Calm
from whygrad.probe.clipping import Clipping
from whygrad.probe.compiled_hooks import CompiledHooks, find_ignored_hooks
from whygrad.probe.copies import Copies
from whygrad.probe.dataflow.dataflow import Dataflow
from whygrad.probe.events import EventLog
from whygrad.probe.facts import (
    find_backward_methods,
    find_unreached_steps,
    merge_uses,
    note_frozen,
    resolve,
    run_info,
    write_facts,
)
from whygrad.probe.feeds import FeedRecorder
from whygrad.probe.groups import GroupTable
from whygrad.probe.guard import Guard
from whygrad.probe.journal import Journal
from whygrad.probe.lineage import Lineage
from whygrad.probe.loop import Loop
from whygrad.probe.loss_factor import LossScales
from whygrad.probe.losses import LossWatch
from whygrad.probe.misspelt import note_mere_attributes
from whygrad.probe.modules import ModuleRegistry
from whygrad.probe.nonfinite.watch import NonfiniteWatch
from whygrad.probe.optimizers import OptimizerTable
from whygrad.probe.outputs import OutputRecorder
from whygrad.probe.parameters import ParameterTable
from whygrad.probe.paths import CutTable, merge_paths
from whygrad.probe.postmortem.errors import explain_error
from whygrad.probe.reads import describe_read, describe_warning
from whygrad.probe.recording import Recorder
from whygrad.probe.replicas import ReplicaTable
from whygrad.probe.rewriting import Rewriting
from whygrad.probe.scaling import Scaling
from whygrad.probe.source import Site, UserCode
from whygrad.probe.symmetry import SymmetryTable
from whygrad.probe.training import Training
from whygrad.probe.write_lines import find_writes
from whygrad.runfile.writer import MAX_BYTES, RunWriter

_clock = time.perf_counter

FLUSH_S = 2.0  # what a killed run loses
FLUSH_SHARE = 0.004  # of the run's time: models of hundreds of parameters have much to write
MAX_FLUSH_S = 15.0


_active: Session | None = None


def _abandon_in_child() -> None:
    if _active is not None:
        _active.abandon()


os.register_at_fork(after_in_child=_abandon_in_child)


def active_session() -> Session | None:
    """Return the session that watches this process, or None."""
    return _active


@dataclass(frozen=True, slots=True)
class SessionOptions:
    """What a session needs to know."""

    folder: Path  # of the run; made if missing
    script: str
    argv: tuple[str, ...] = ()
    cwd: str = ""  # working directory at the start; "" for the present one
    every: int | None = None  # record every N-th round of steps; None: within the budget
    trace_all: bool = False  # record and trace every step, whatever it costs
    overhead: float = 0.02  # share of the run's time
    max_bytes: int = MAX_BYTES  # of the run file
    rank: int = 0
    world_size: int = 1
    file_name: str | None = None  # without suffix; None: "rank0", after its rank


class Session:
    """Watches this process from `start` to `finish`."""

    def __init__(self, options: SessionOptions) -> None:
        self.options = options
        self.path = options.folder / f"{options.file_name or f'rank{options.rank}'}.whygrad"
        self.rank, self.world_size = options.rank, options.world_size  # as far as is known
        self.guard = Guard(self._stop_watching)
        self.cwd = options.cwd or str(Path.cwd())
        self.user = UserCode(_program_file(options.script, self.cwd))
        self.registry = ModuleRegistry(self.user)
        self.parameters = ParameterTable(self.registry, self.user)
        self.optimizers = OptimizerTable(self.user)
        self.groups = GroupTable()
        self.rewriting = Rewriting(self)
        self.copies = Copies(self)
        self.replicas = ReplicaTable(self.user)
        self.compiled_hooks = CompiledHooks()
        self.outputs = OutputRecorder(self.registry, self.guard)
        self.lineage = Lineage()
        self.feeds = FeedRecorder(self.user, self.outputs, self.lineage, lambda: self.training.steps)
        self.activations = ActivationRecorder(
            lambda: self.training.steps, self.registry.made_at, self.outputs.note_sequence
        )
        self.symmetry = SymmetryTable()
        self.loop = Loop(self.parameters)
        self.clipping = Clipping()
        self.scaling = Scaling()
        self.loss_scales = LossScales()
        self.by_hand = ByHand()
        self.events = EventLog()
        self.cuts = CutTable()
        self.journal = Journal()
        self.tracer = Dataflow(
            self.user,
            self.guard,
            self.journal,
            in_module=lambda: self.outputs.depth > 0,
            on_intermediate_grad_read=self.note_intermediate_read,
            on_freeze=self.note_frozen,
        )
        self.losses = LossWatch(self)
        self.nonfinite = NonfiniteWatch(self)
        self.calm = Calm()
        self.training = Training(self, Budget(options.overhead, 1 if options.trace_all else options.every))
        self.outputs.on_forward = self.training.windows.check
        self.outputs.on_arguments = self._note_arguments
        self.outputs.on_output = self.activations.note
        self.tracer.listen("lineage", self.lineage.listen)
        self.tracer.listen("feeds", self.feeds.listen)
        self.tracer.listen("activations", self.activations.listen)
        self.outputs.on_evaluation = self.copies.note_evaluation
        self.notes: list[str] = []
        self.refused: set[str] = set()  # kinds of tensors that have no statistics
        self.began = _clock()
        self.started_utc = datetime.now(UTC).isoformat(timespec="seconds")
        self.start_s = 0.0  # of our own time, to get ready
        self.flushed = 0.0  # when, in seconds since the session began
        self.flush_s = FLUSH_S  # between two flushes
        self.pid = os.getpid()
        self.grad_mode = True  # as the program left it
        self._undo: Callable[[], None] = lambda: None
        self._finished = False

    def _note_arguments(self, module: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.feeds.enter(module, args, kwargs)
        self.activations.enter(module, args, kwargs)

    def watch_calls(self, on: bool) -> None:
        """Switch the observation of module calls; set by the installation."""

    def _stop_watching(self, part: str) -> None:
        """Take out what watches each call, once the part that reads it, or ends its windows, has failed."""
        if part in ("outputs", "steps"):
            self.watch_calls(False)
        if part in ("tracer", "steps"):
            self.tracer.switch_off()
        if part in ("search for NaN and Inf", "steps"):
            self.nonfinite.switch(on=False)

    # -- life ---------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Open the run file and switch the probe on.

        Raises:
            OSError: The run folder can't be made.
            RunFileError: The run file can't be written, or is there already.
            RuntimeError: A session is active already.
        """
        global _active
        if _active is not None:
            msg = "a session is active already"
            raise RuntimeError(msg)
        from whygrad.probe.installation import install

        self.options.folder.mkdir(parents=True, exist_ok=True)
        self.writer = RunWriter(self.path, run_info(self), max_bytes=self.options.max_bytes)
        self.recorder = Recorder(self.refused, Arrivals(Backlog(self.writer), self.guard))
        self._undo = install(self)
        _active = self
        self.training.windows.open()

    def count_start(self, began: float) -> None:
        """Count what it took to get ready, imports included, as our own time; `began` is of `time.perf_counter`."""
        self.guard.own_s += _clock() - began
        self.start_s = self.guard.own_s
        self.began = min(self.began, began)
        self.training.begin()

    def undo_later(self, undo: Callable[[], None]) -> None:
        """Have something else undone when the probe is switched off."""
        before = self._undo

        def undo_both() -> None:
            undo()
            before()

        self._undo = undo_both

    def abandon(self) -> None:
        """Forget everything without writing: called in a forked child, which is not the program that is watched."""
        self._finished = True
        self._take_out()

    def _take_out(self) -> None:
        global _active
        _active = None
        self.tracer.switch_off()
        self.nonfinite.switch(on=False)
        self._undo()

    def finish(self, error: BaseException | None = None) -> None:
        """Switch the probe off and complete the run file.

        Args:
            error: The exception that ended the program, if one did.
        """
        if self._finished or os.getpid() != self.pid:
            return
        self._finished = True
        self.grad_mode = torch.is_grad_enabled()
        self.calm.end()
        if self.tracer.active:
            self.guard.run("tracer", lambda: merge_paths(self, self.parameters.alive()))
        self._take_out()
        self.guard.run("loop", self.loop.end_all, self.training.steps)
        if error is not None:
            self.guard.run("names", lambda: self.registry.name_from(error.__traceback__))
        self.guard.run("names", lambda: resolve(self, judge_stale=False))
        self.guard.run("search for NaN and Inf", self.nonfinite.finish)
        self.guard.run("copies", self.copies.link)
        self.guard.run("uses", merge_uses, self)
        self.guard.run("frozen", lambda: note_frozen(self, crashed=error is not None))
        self.guard.run("step calls", find_unreached_steps, self)
        self.guard.run("written lines", find_writes, self)
        self.guard.run("backward methods", find_backward_methods, self)
        self.guard.run("compiled hooks", find_ignored_hooks, self)
        self.guard.run("mere attributes", note_mere_attributes, self)
        self.guard.run("accelerators", self.recorder.arrivals.finish)
        self.guard.run("accelerators", self.parameters.fetch_rows)
        raised = self._raised(error)
        self.guard.run("facts", lambda: write_facts(self, ended=True, raised=raised))
        self.guard.run("run file", self.writer.close)

    def _raised(self, error: BaseException | None) -> Raised | None:
        if error is None:
            return None
        explained = self.guard.run("post-mortem", explain_error, self, error)
        return explained or Raised(type(error).__name__, "")

    def note(self, text: str) -> None:
        """Add what could not be observed, once."""
        if text not in self.notes:
            self.notes.append(text)

    def all_notes(self) -> tuple[str, ...]:
        """Return what was not observed, and which parts were switched off after an error of their own."""
        failed = (
            f"a part of whygrad failed and was switched off, so what it looks for was not seen ({part}: {why})"
            for part, why in self.guard.failures.items()
        )
        return (*self.notes, *sorted(self.refused), *failed)

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
        self.training.note_optimizer(optimizer, None)
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

    def note_written(self, tensor: torch.Tensor, site: Site | None) -> None:
        """Remember the line that last wrote a parameter before its first step: its initialisation."""
        entry = self.parameters.get(tensor) or self.parameters.birth(tensor)
        if not getattr(entry, "steps", 0):
            entry.written = site

    def flush(self) -> None:
        """Bring the run file up to date, for a report while the program goes on."""
        self.guard.run("flush", self.write)

    def write(self) -> None:
        """Write all facts as they are now."""
        self.calm.end()
        self.flushed = _clock() - self.began
        write_facts(self)
        cost = _clock() - self.began - self.flushed
        self.flush_s = min(max(FLUSH_S, cost / FLUSH_SHARE), MAX_FLUSH_S)


def _program_file(script: str, cwd: str) -> str:
    """Return the path of the program's main file; of `-m module`, the file that Python found for it."""
    if script.startswith("-"):
        return str(getattr(sys.modules.get("__main__"), "__file__", None) or "")
    return os.path.join(cwd, script) if script else ""
