"""What a backward pass is about to reach, and what moved since the last one though nobody stepped."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from whygrad.probe import loop_events
from whygrad.probe.facts import resolve
from whygrad.probe.graph import reached_leaves
from whygrad.probe.parameters import Tracked
from whygrad.probe.variables import variable_name
from whygrad.stats.kernel import is_supported, sample_view

if TYPE_CHECKING:
    from whygrad.probe.session import Session

Tensors = tuple[torch.Tensor, ...]

SAMPLE = 1024  # elements of a parameter that are compared


def note_reached(session: Session, roots: Tensors, inputs: Tensors | None) -> None:
    """Count the leaves that gradients of `roots` flow to; `inputs` are what the pass was asked for."""
    if not session.training.backwards:
        resolve(session, judge_stale=True)
    leaves = reached_leaves(roots)
    if leaves is None:
        session.note("the autograd graph has over a million nodes: it was not walked")
        return
    if not any(isinstance(leaf, torch.nn.Parameter) or session.parameters.get(leaf) for leaf in leaves.values()):
        _note_constant_loss(session, leaves)
    for leaf in leaves.values():
        entry = session.parameters.get(leaf) or _new_leaf(session, leaf)
        if entry is not None:
            entry.reached += 1
    for entry in session.parameters.alive():
        entry.walked += 1
    session.guard.run("loop", loop_events.note_graph, session, roots, inputs, leaves)


def _note_constant_loss(session: Session, leaves: dict[int, torch.Tensor]) -> None:
    """Note where a loss that reaches no parameter was made: a stand-in that only looks like a loss."""
    for leaf in leaves.values():
        site = session.tracer.made_at(leaf)
        if site is not None:
            session.events.note("constant_loss", session.training.steps, site)


def _new_leaf(session: Session, leaf: torch.Tensor) -> Tracked | None:
    birth = session.parameters.birth(leaf)
    birth.passes += 1
    if isinstance(leaf, torch.nn.Parameter):
        resolve(session, judge_stale=True)
        found = session.parameters.get(leaf)
        return found or session.parameters.add_loose(leaf, variable_name(leaf, session.user))
    if birth.passes < 2 and len(session.optimizers):  # an input that requires grad lives for one pass
        return None
    return session.parameters.add_loose(leaf, variable_name(leaf, session.user))


def note_moves(session: Session) -> None:
    """Count the values that changed without a step: a write through `.data` leaves no other trace."""
    stepped = {optimizer.id for optimizer in session.optimizers if optimizer.steps}
    for entry in session.parameters.alive():
        tensor = entry.ref()
        before, entry.sample = entry.sample, None
        if tensor is None or entry.changed_outside or not stepped.isdisjoint(entry.optimizers):
            continue
        if tensor.device.type != "cpu" or not is_supported(tensor):  # comparing would wait for an accelerator
            continue
        entry.sample = sample_view(tensor.detach(), SAMPLE).clone()
        if before is not None and before.shape == entry.sample.shape:
            entry.changed_outside += not torch.equal(before, entry.sample)
