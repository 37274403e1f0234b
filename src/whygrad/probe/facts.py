"""From the session's tables to facts in the run file."""

from __future__ import annotations

import platform
import time
from typing import TYPE_CHECKING

import torch

from whygrad._version import __version__
from whygrad.model import Place, Raised, RunInfo
from whygrad.probe.assignments import gradient_method, method_call_line
from whygrad.probe.source import line_place

if TYPE_CHECKING:
    from whygrad.probe.session import Session

_clock = time.perf_counter

MODULE_BACKWARD = "module_backward"  # event: a module that ran has a method of that name
UNREACHED_STEP = "unreached_step_call"  # event: the source has a step() call on an optimizer that never stepped


def run_info(session: Session, *, ended: bool = False, raised: Raised | None = None) -> RunInfo:
    """Return what was run, where, and how far it is."""
    options = session.options
    return RunInfo(
        script=options.script,
        argv=options.argv,
        cwd=session.cwd,
        python=platform.python_version(),
        torch=str(torch.__version__),
        whygrad=__version__,
        rank=session.rank,
        world_size=session.world_size,
        pid=session.pid,
        started_utc=session.started_utc,
        duration_s=_clock() - session.began,
        own_s=session.guard.own_s,
        steps=session.training.steps,
        recorded_steps=session.training.recorded_steps,
        traced_steps=session.training.windows.traced_steps,
        forwards=session.outputs.forwards,
        backwards=session.training.backwards,
        grad_calls=session.training.grad_calls,
        ended=ended,
        raised=raised,
        notes=session.all_notes(),
    )


def write_facts(session: Session, *, ended: bool = False, raised: Raised | None = None) -> None:
    """Bring the run file up to date."""
    writer = session.writer
    session.recorder.arrivals.backlog.settle()
    session.training.counts.settle()
    prefixed = session.parameters.prefixing()
    for entry in session.parameters:
        writer.put(entry.fact(prefixed=prefixed(entry.root)))
    for cut in session.cuts.facts():
        writer.put(cut)
    for module in session.outputs.module_facts():
        writer.put(module)
    for output in session.outputs.output_facts(prefixed):
        writer.put(output)
    for optimizer in session.optimizers:
        writer.put(optimizer.fact())
    for replica in session.replicas:
        writer.put(replica.fact(compiled=session.training.windows.compiled))
    for group in session.groups.facts(session.optimizers):
        writer.put(group)
    _write_numbers(session)
    for happened in session.loop.facts():
        writer.put(happened)
    for clip in session.clipping.facts():
        writer.put(clip)
    for scale in session.loss_scales.facts():
        writer.put(scale)
    for call in session.losses.facts():
        writer.put(call)
    writer.put_events(session.events.facts())
    writer.put_totals(session.recorder.arrivals.backlog.totals.totals())
    writer.update_info(run_info(session, ended=ended, raised=raised))
    writer.flush()
    session.parameters.retire()
    session.optimizers.retire()
    session.training.counts.forget(optimizer.id for optimizer in session.optimizers.alive())
    session.outputs.retire()


def _write_numbers(session: Session) -> None:
    """Write what is known of data, of equal units and of flat functions."""
    writer = session.writer
    names = {module.id: module.name for module in session.outputs.module_facts()}
    for feed in session.feeds.facts(names):
        writer.put(feed)
    for symmetry in session.symmetry.facts():
        writer.put(symmetry)
    for activation in session.activations.facts():
        writer.put(activation)


def resolve(session: Session, *, judge_stale: bool) -> None:
    """Name the parameters and modules of every model in use.

    Args:
        session: Whose.
        judge_stale: Mark parameters that no module holds any more. Not at the end of the program, when functions have
            returned and models are gone.
    """
    parameters = session.parameters
    held = parameters.resolve(renames=judge_stale)
    if any(entry.is_nameless and entry.ref() is not None for entry in parameters.alive()):
        session.registry.search_everywhere()
        held = parameters.resolve(renames=judge_stale)
    if judge_stale:
        parameters.mark_stale(held)
    session.outputs.name(session.registry.tree())
    for entry in parameters.alive():
        module = entry.module_ref() if entry.module_ref is not None else None
        order = session.outputs.order_of(module)
        entry.order = order if order is not None else entry.order


def note_frozen(session: Session, *, crashed: bool) -> None:
    """Bring `requires_grad` up to date for what never stepped; after a crash, where the last state counts, for all."""
    for entry in session.parameters.alive():
        tensor = entry.ref()
        if tensor is not None and (crashed or not entry.steps):
            entry.requires_grad = tensor.requires_grad


def merge_uses(session: Session) -> None:
    """Add what the tracer saw since the last step to the parameters."""
    uses, session.tracer.uses = session.tracer.uses, {}
    for entry in session.parameters.alive():
        tensor = entry.ref()
        use = uses.get(id(tensor)) if tensor is not None else None
        if use is not None and use.ref() is tensor:
            entry.uses = (entry.uses or 0) + use.count
            entry.used = use.site
        elif entry.uses is None and session.training.windows.traced_steps:
            entry.uses = 0


def find_backward_methods(session: Session) -> None:
    """Note the modules that ran and have a method `backward`, which autograd never calls."""
    known: dict[type, Place | None] = {}
    for name, cls in session.outputs.types():
        if cls not in known:
            known[cls] = gradient_method(cls)
            place = known[cls]
            if place is not None:
                session.events.note_place(MODULE_BACKWARD, session.training.steps, place, name)


def find_unreached_steps(session: Session) -> None:
    """Note the `step()` calls in the source of optimizers that never stepped."""
    for optimizer in session.optimizers:
        if optimizer.steps or optimizer.made is None or not optimizer.name:
            continue
        for path in dict.fromkeys((optimizer.made.code.co_filename, session.options.script)):
            line = method_call_line(path, optimizer.name, "step")
            if line is not None:
                session.events.note_place(
                    UNREACHED_STEP, session.training.steps, line_place(path, line), optimizer.name
                )
                break
