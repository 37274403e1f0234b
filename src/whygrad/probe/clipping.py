"""Clipping: which line clips whose gradients, and how much it takes away."""

from __future__ import annotations

import math
import sys
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from types import FrameType
from typing import TYPE_CHECKING, Any

import torch
from torch.nn.utils import clip_grad

from whygrad.model import STATISTICS, Clip, Deed
from whygrad.probe.dataflow.arguments import Call as TracedCall
from whygrad.probe.dataflow.observer import Listener
from whygrad.probe.dataflow.operations import Operation
from whygrad.probe.journal import storage_key
from whygrad.probe.parameters import Tracked
from whygrad.probe.patches import After, Before, Patches
from whygrad.probe.source import Site, local_names, place_or_none
from whygrad.stats.pending import Pending

if TYPE_CHECKING:
    from whygrad.probe.session import Session

_KEPT = 256  # lines
_CLAMPS = frozenset(("clamp_", "clip_"))
_WITH_NORM = "_clip_grads_with_norm_"  # what `clip_grad_norm_` calls with the tensors and their norm


@dataclass(slots=True)
class _Line:
    id: int
    calls: int = 0
    empty_calls: int = 0
    used_up: int = 0
    measured: int = 0
    clipped: int = 0
    log_factor: float = 0.0  # summed over the measured calls
    log_norm: float = 0.0
    limit: float | None = None
    scale: float | None = None
    _pending: deque[tuple[Pending, float | None]] = field(default_factory=deque)  # norms on an accelerator, and limits

    def note(self, call: Call) -> None:
        """Count how much a call took away, as soon as that is known."""
        if call.pending is not None:
            self._pending.append((call.pending, call.limit))
        self._add(call.norm, call.factor)
        self.settle()

    def settle(self) -> None:
        """Count what has arrived by now."""
        while self._pending and self._pending[0][0].is_ready():
            pending, limit = self._pending.popleft()
            self._add(*_measured(float(pending.read().matrix[0, 0]), limit))

    def _add(self, norm: float | None, factor: float | None) -> None:
        if factor is not None:
            self.measured += 1
            self.clipped += factor > 1
            self.log_factor += math.log(factor)
            self.log_norm += math.log(norm) if norm else 0.0


@dataclass(slots=True)
class Call:
    """A call of a clip function that is running."""

    kind: str
    limit: float | None
    iterator: bool  # the tensors come from an iterator, which looking at would use up
    tensors: list[torch.Tensor] | None = None  # None: not known
    norm: float | None = None  # before clipping
    factor: float | None = None
    pending: Pending | None = None  # the norm, where it lies on an accelerator


@dataclass(slots=True)
class Clipping:
    """The lines of one session that clip."""

    running: Call | None = None
    gradients: dict[int, Tracked] = field(default_factory=dict)  # by their memory, after a backward pass
    gradients_at: int = -1  # backward passes then
    _lines: dict[tuple[str, Site | None, tuple[int, ...]], _Line] = field(default_factory=dict)

    def count(self, call: Call, site: Site | None, optimizers: tuple[int, ...], scale: float | None) -> None:
        """Count a call that has returned."""
        key = (call.kind, site, optimizers)
        line = self._lines.get(key)
        if line is None:
            if len(self._lines) == _KEPT:
                return
            line = self._lines[key] = _Line(len(self._lines))
        line.calls += 1
        line.limit = call.limit
        if call.tensors is not None and not call.tensors:
            line.empty_calls += 1
            line.used_up += call.iterator
        line.note(call)
        if scale is not None:
            line.scale = max(line.scale or 0.0, scale)

    def facts(self) -> Iterator[Clip]:
        """Yield what is known of each line."""
        for (kind, site, optimizers), line in self._lines.items():
            line.settle()
            measured = line.measured
            yield Clip(
                id=line.id,
                kind=kind,
                place=place_or_none(site),
                optimizers=optimizers,
                calls=line.calls,
                empty_calls=line.empty_calls,
                used_up=line.used_up,
                measured=measured,
                clipped=line.clipped,
                factor=math.exp(line.log_factor / measured) if measured else None,
                limit=line.limit,
                norm=math.exp(line.log_norm / measured) if measured else None,
                scale=line.scale,
            )


def patch_clipping(session: Session, patches: Patches) -> None:
    """Observe the clip functions of torch.

    `clip_grad_norm_` is observed from inside where that is possible: it warns on behalf of its caller, counted in
    frames, so there must be none of ours between the two.
    """
    value = _observed(session, "value", "clip_value")
    patches.observe(clip_grad, "clip_grad_value_", *value, session.calm.passes)
    patches.replace(torch.nn.utils, "clip_grad_value_", clip_grad.clip_grad_value_)
    norm = _observed(session, "norm", "max_norm")
    if hasattr(clip_grad, _WITH_NORM):
        patches.observe(clip_grad, _WITH_NORM, *norm, session.calm.passes)
        patches.replace(torch.nn.utils, "clip_grads_with_norm_", getattr(clip_grad, _WITH_NORM))
    else:
        patches.observe(clip_grad, "clip_grad_norm_", *norm, session.calm.passes)
        patches.replace(torch.nn.utils, "clip_grad_norm_", clip_grad.clip_grad_norm_)
    session.tracer.listen("clipping", _by_hand(session))


def _by_hand(session: Session) -> Listener:
    """Return what sees gradients clamped one by one, as `p.grad.data.clamp_(-1, 1)` does, in traced steps."""

    def listen(
        _func: Callable[..., Any], operation: Operation, call: TracedCall, here: Callable[[], Site | None]
    ) -> None:
        target = call.args[0] if call.args else None
        if operation.name not in _CLAMPS or not isinstance(target, torch.Tensor) or not (key := storage_key(target)):
            return
        if session.clipping.gradients_at != session.training.backwards:
            session.clipping.gradients_at, session.clipping.gradients = session.training.backwards, _gradients(session)
        entry = session.clipping.gradients.get(key)
        tensor = None if entry is None else entry.ref()
        if entry is not None and tensor is not None and tensor.grad is not None and storage_key(tensor.grad) == key:
            limit = _number(call.args[-1]) if len(call.args) > 1 else None
            optimizers = tuple(sorted(entry.optimizers))
            clamp = Call("value", limit, iterator=False, tensors=[target])
            session.clipping.count(clamp, here(), optimizers, session.scaling.carried(optimizers))

    return listen


def _gradients(session: Session) -> dict[int, Tracked]:
    """Return the parameters by the memory of their gradient."""
    alive = ((entry, tensor) for entry in session.parameters.alive() if (tensor := entry.ref()) is not None)
    return {storage_key(t.grad): entry for entry, t in alive if t.is_leaf and t.grad is not None}


def _observed(session: Session, kind: str, limit_name: str) -> tuple[Before, After]:
    def before(args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        got = args[0] if args else kwargs.get("parameters")
        limit = _number(args[1] if len(args) > 1 else kwargs.get(limit_name))
        total = args[2] if len(args) > 2 else kwargs.get("total_norm")
        given = got if total is None else _given(got)
        call = Call(kind, limit, iterator=hasattr(given, "__next__"), tensors=_listed(got))
        if type(total) is not torch.Tensor:  # a DTensor would make ranks talk to each other
            pass
        elif total.is_cpu:
            call.norm, call.factor = _measured(float(total.detach()), call.limit)
        elif session.training.recording:
            row = total.detach().reshape(-1)[:1].expand(len(STATISTICS))  # the host must not wait for it
            nothing = torch.zeros(1, len(STATISTICS), dtype=torch.float64, device="cpu")
            call.pending = session.recorder.arrivals.accelerators.begin_rows(nothing, {0: row})
        session.clipping.running = call
        session.loop.look()

    def after(_args: Any, _kwargs: Any, _result: Any) -> None:
        call, session.clipping.running = session.clipping.running, None
        if call is None:
            return
        site = session.user.capture(1)
        tensors = call.tensors or []
        entries = [session.parameters.get(tensor) for tensor in (*tensors[:1], *tensors[-1:])]  # all would cost time
        holders = {owner for entry in entries if entry is not None for owner in entry.optimizers}
        optimizers = session.loop.after_change(Deed.CLIP, site, holders)
        session.clipping.count(call, site, optimizers, session.scaling.carried(optimizers))

    return session.guard.wrap("clipping", before), session.guard.wrap("clipping", after)


def _given(got: Any) -> Any:
    """Return what the running `clip_grad_norm_` was called with, of which `got` is the list."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_filename == clip_grad.__file__ and frame.f_code.co_varnames[:2] == ("args", "kwargs"):
            names = local_names(frame)
            args, kwargs = names.get("args"), names.get("kwargs")
            if isinstance(args, tuple) and isinstance(kwargs, dict):
                return args[0] if args else kwargs.get("parameters")
        frame = frame.f_back
    return got


def _measured(norm: float, limit: float | None) -> tuple[float, float] | tuple[None, None]:
    """Return a norm before clipping, and what it was divided by; None where that says nothing."""
    if math.isfinite(norm) and norm > 0 and limit is not None and limit > 0:
        return norm, max(1.0, norm / limit)
    return None, None


def _number(limit: Any) -> float | None:
    if isinstance(limit, torch.Tensor) and (limit.device.type != "cpu" or limit.numel() != 1):
        return None
    try:
        return float(limit)
    except (TypeError, ValueError):
        return None


def _listed(given: Any) -> list[torch.Tensor] | None:
    if isinstance(given, torch.Tensor):
        return [given]
    return list(given) if isinstance(given, list | tuple) else None
