"""Loss scaling: which losses carry a GradScaler's scale, which gradients still do, which steps the scaler left out."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch

from whygrad.model import Deed
from whygrad.probe.patches import Patches

if TYPE_CHECKING:
    from whygrad.probe.session import Session

_KEPT = 32  # scaled losses that wait for their backward pass


@dataclass(slots=True)
class Scaling:
    """The scaled losses of one session."""

    _scaled: dict[int, tuple[weakref.ref[torch.Tensor], float]] = field(default_factory=dict)
    _waiting: float | None = None  # scale of a loss that no backward pass has run on yet
    _carried: dict[int, float] = field(default_factory=dict)  # id of an optimizer -> scale its gradients carry

    def note(self, outputs: Any, scale: float) -> None:
        """Remember what a GradScaler returned."""
        self._waiting = scale
        for tensor in _tensors(outputs):
            self._scaled[id(tensor)] = (weakref.ref(tensor), scale)
        while len(self._scaled) > _KEPT:
            del self._scaled[next(iter(self._scaled))]

    @property
    def is_used(self) -> bool:
        """Return whether a GradScaler has scaled a loss."""
        return bool(self._scaled)

    def of(self, loss: torch.Tensor | None) -> float | None:
        """Return the scale that a loss carries; None if it carries none.

        A loss that is no result of a scaler was computed from one if such a result still waits for its backward pass.
        """
        known = self._scaled.get(id(loss))
        if known is not None and known[0]() is loss:
            return known[1]
        return self._waiting

    def passed(self, scale: float | None, reached: tuple[int, ...]) -> None:
        """Note that a backward pass on a loss with this scale has changed the gradients of optimizers."""
        self._waiting = None
        for number in reached:
            if scale is None:
                self._carried.pop(number, None)
            else:
                self._carried[number] = scale

    def unscaled(self, optimizer: int) -> None:
        """Note that the gradients of an optimizer carry no scale any more."""
        self._carried.pop(optimizer, None)

    def carried(self, optimizers: tuple[int, ...]) -> float | None:
        """Return the scale that gradients of these optimizers carry."""
        return max((self._carried[number] for number in optimizers if number in self._carried), default=None)


def _tensors(outputs: Any) -> Iterator[torch.Tensor]:
    if isinstance(outputs, torch.Tensor):
        yield outputs
    elif isinstance(outputs, list | tuple):
        for each in outputs:
            yield from _tensors(each)


def current_scale(scaler: Any) -> float | None:
    """Return the scale of a GradScaler; None if it is off; NaN where reading it would wait for an accelerator."""
    scale = getattr(scaler, "_scale", None)
    if not scaler.is_enabled() or not isinstance(scale, torch.Tensor):
        return None
    return float(scale) if scale.device.type == "cpu" else float("nan")


def patch_scaler(session: Session, patches: Patches) -> None:
    """Observe GradScaler."""
    wrap = session.guard.wrap
    steps_before: dict[int, int] = {}

    def optimizer_of(args: tuple[Any, ...], kwargs: dict[str, Any]) -> torch.optim.Optimizer:
        optimizer: torch.optim.Optimizer = args[1] if len(args) > 1 else kwargs["optimizer"]
        return optimizer

    def scaled(args: tuple[Any, ...], _kwargs: Any, result: Any) -> None:
        scale = current_scale(args[0])
        if scale is not None:
            session.scaling.note(result, scale)

    def look(_args: Any, _kwargs: Any) -> None:
        session.loop.look()

    def unscaled(args: tuple[Any, ...], kwargs: dict[str, Any], _result: Any) -> None:
        if current_scale(args[0]) is not None:
            number = session.optimizers.get(optimizer_of(args, kwargs)).id
            session.loop.after_change(Deed.UNSCALE, session.user.capture(1), (number,))
            session.scaling.unscaled(number)

    def count_steps(args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        optimizer = optimizer_of(args, kwargs)
        tracked = session.optimizers.get(optimizer)
        steps_before[id(optimizer)] = tracked.steps
        if current_scale(args[0]) is not None and getattr(optimizer, "_step_supports_amp_scaling", False):
            session.loop.after_change(Deed.UNSCALE, session.user.capture(1), (tracked.id,))  # in its own kernel
            session.scaling.unscaled(tracked.id)

    def note_skipped(args: tuple[Any, ...], kwargs: dict[str, Any], _result: Any) -> None:
        optimizer = optimizer_of(args, kwargs)
        tracked = session.optimizers.get(optimizer)
        if tracked.steps == steps_before.pop(id(optimizer), -1):
            tracked.skipped += 1
            session.loop.skipped(tracked, session.user.capture(1), step=session.training.steps)

    scaler = torch.amp.GradScaler
    patches.observe(scaler, "scale", after=wrap("scaling", scaled))
    patches.observe(scaler, "unscale_", wrap("scaling", look), wrap("scaling", unscaled))
    patches.observe(scaler, "step", wrap("scaling", count_steps), wrap("scaling", note_skipped))
