"""Clipping: which line clips whose gradients, and how much it takes away."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch
from torch.nn.utils import clip_grad

from whygrad.model import Clip, Deed
from whygrad.probe.patches import Patches
from whygrad.probe.source import Site, place_or_none

if TYPE_CHECKING:
    from whygrad.probe.session import Session

_KEPT = 256  # lines
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


@dataclass(slots=True)
class Call:
    """A call of a clip function that is running."""

    kind: str
    limit: float | None
    iterator: bool  # the tensors come from an iterator, which looking at would use up
    tensors: list[torch.Tensor] | None = None  # None: not known
    norm: float | None = None  # before clipping
    factor: float | None = None


@dataclass(slots=True)
class Clipping:
    """The lines of one session that clip."""

    running: Call | None = None
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
        if call.factor is not None:
            line.measured += 1
            line.clipped += call.factor > 1
            line.log_factor += math.log(call.factor)
            line.log_norm += math.log(call.norm) if call.norm else 0.0
        if scale is not None:
            line.scale = max(line.scale or 0.0, scale)

    def facts(self) -> Iterator[Clip]:
        """Yield what is known of each line."""
        for (kind, site, optimizers), line in self._lines.items():
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
    """Observe the clip functions of torch."""
    wrap = session.guard.wrap
    for kind in ("norm", "value"):
        _patch_function(session, patches, kind)
    if not hasattr(clip_grad, _WITH_NORM):
        return

    def with_norm(args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        call = session.clipping.running
        tensors = args[0] if args else kwargs.get("parameters")
        total = args[2] if len(args) > 2 else kwargs.get("total_norm")
        if call is None or not isinstance(tensors, list) or not isinstance(total, torch.Tensor):
            return
        call.tensors = tensors
        waits = total.device.type != "cpu" and not session.training.recording
        if not waits and call.limit is not None:
            _measure_norm(call, float(total.detach()))

    patches.observe(clip_grad, _WITH_NORM, before=wrap("clipping", with_norm))


def _measure_norm(call: Call, norm: float) -> None:
    if math.isfinite(norm) and norm > 0 and call.limit is not None and call.limit > 0:
        call.norm, call.factor = norm, max(1.0, norm / call.limit)


def _patch_function(session: Session, patches: Patches, kind: str) -> None:
    name = f"clip_grad_{kind}_"
    limit_name = "max_norm" if kind == "norm" else "clip_value"

    def before(args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        given = args[0] if args else kwargs.get("parameters")
        limit = args[1] if len(args) > 1 else kwargs.get(limit_name)
        call = Call(kind, _number(limit), iterator=hasattr(given, "__next__"), tensors=_listed(given))
        session.clipping.running = call
        session.loop.look()

    def after(_args: Any, _kwargs: Any, _result: Any) -> None:
        call, session.clipping.running = session.clipping.running, None
        if call is None:
            return
        site = session.user.capture(1)
        tensors = call.tensors or ()
        holders = {
            owner for t in tensors if (entry := session.parameters.get(t)) is not None for owner in entry.optimizers
        }
        optimizers = session.loop.after_change(Deed.CLIP, site, holders)
        session.clipping.count(call, site, optimizers, session.scaling.carried(optimizers))

    ours = session.guard.wrap("clipping", before), session.guard.wrap("clipping", after)
    patches.observe(clip_grad, name, *ours)
    patches.replace(torch.nn.utils, name, getattr(clip_grad, name))


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
    return [t for t in given if isinstance(t, torch.Tensor)] if isinstance(given, list | tuple) else None
