"""What the parts that follow the loop are told of each backward pass and each step."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import torch

from whygrad.probe.gradient_norm import gradient_norms
from whygrad.probe.optimizers import TrackedOptimizer
from whygrad.probe.source import Site

if TYPE_CHECKING:
    from whygrad.probe.session import Session

Tensors = tuple[torch.Tensor, ...]


def before_backward(session: Session) -> None:
    """Take note of how things are before a backward pass."""
    if not _is_nested():
        session.loop.before_backward()


def note_graph(session: Session, roots: Tensors, inputs: Tensors | None, leaves: Mapping[int, torch.Tensor]) -> None:
    """Take note of the graph that a backward pass is about to run through, where it is walked."""
    if _is_nested():
        return
    session.loop.note_leaves(roots, inputs, leaves)
    session.by_hand.look(entry for leaf in leaves.values() if (entry := session.parameters.get(leaf)) is not None)
    if roots:
        session.loss_scales.look(roots[0], session.scaling.of(roots[0]))


def after_backward(session: Session, site: Site | None, root: torch.Tensor | None) -> None:
    """Note a backward pass that has run."""
    if _is_nested():
        return
    scale = session.scaling.of(root)
    reached = session.loop.after_backward(site, scaled=scale is not None)
    session.scaling.passed(scale, reached)
    session.loss_scales.passed(site)
    if not session.training.recording:
        return
    for tracked in session.optimizers.alive():
        optimizer = tracked.ref()
        if tracked.id in reached and optimizer is not None and (tracked.is_changed or session.training.closely):
            tracked.backward_norms = gradient_norms(optimizer, session.parameters, scale or 1.0)


def before_step(session: Session, optimizer: torch.optim.Optimizer, tracked: TrackedOptimizer) -> None:
    """Look at the gradients that an optimizer is about to use."""
    session.loop.before_step(optimizer, tracked)


def after_step(session: Session, tracked: TrackedOptimizer, site: Site | None, *, closure: bool) -> None:
    """Note a step that was made."""
    session.loop.stepped(tracked, site, step=session.training.steps, closure=closure)


def unscaled_loss(session: Session, loss: float | None, root: torch.Tensor | None) -> float | None:
    """Return the loss that the program computed, before a GradScaler multiplied it."""
    scale = None if loss is None else session.scaling.of(root)
    return loss if loss is None or scale is None else loss / scale


def _is_nested() -> bool:
    """Return whether autograd is running: a custom backward, or a checkpoint, that calls backward again."""
    return torch._C._current_graph_task_id() != -1
