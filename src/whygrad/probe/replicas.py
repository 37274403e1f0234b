"""The models that DistributedDataParallel wraps, and which backward passes it averages over the ranks.

Calling the wrapper arms it: the next backward pass through its parameters is averaged, with all that has accumulated in
their `.grad` before, and disarms it. A backward pass without such a call, or after a call under `no_sync()`, leaves
this rank's own gradient. Nothing here communicates.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from whygrad.model import Replica
from whygrad.probe.optimizers import TrackedOptimizer, held_tensors
from whygrad.probe.parameters import Tracked
from whygrad.probe.patches import Patches
from whygrad.probe.source import Site, UserCode, local_names, place_or_none

if TYPE_CHECKING:
    from whygrad.probe.session import Session

PART = "replicas"  # its name where the guard reports failures
MAX_LOOKS = 64  # calls past a wrapper of which the line is looked for
SAMPLE = 8  # parameters that are looked at to see whether a backward pass brought gradients

_Mark = tuple[int, int] | None  # identity and version of a gradient


@dataclass(slots=True)
class TrackedReplica:
    """One wrapper and what it did."""

    id: int
    ref: weakref.ref[DistributedDataParallel]
    entries: list[Tracked]  # of the parameters it averages
    world_size: int
    find_unused_parameters: bool
    static_graph: bool
    made: Site | None
    hook: str = ""
    called: Site | None = None
    calls: int = 0
    local_calls: int = 0
    no_sync: Site | None = None
    outside: Site | None = None
    outside_calls: int = 0
    backwards: int = 0
    local_backwards: int = 0
    steps: int = 0
    local_steps: int = 0
    first_local_step: int | None = None
    local_why: str = ""
    local: Site | None = None
    armed: bool = False  # the next backward pass is averaged
    pending: bool = False  # gradients came since the last step
    why: str = ""  # why the gradients that are there now are this rank's own; "" where they are averaged
    backward: Site | None = None  # the last backward pass
    called_since: bool = False  # since the last step, to average
    local_since: bool = False  # since the last backward pass, under no_sync
    outside_since: bool = False  # since the last step, past the wrapper
    marks: list[_Mark] = field(default_factory=list)  # before the backward pass that runs

    def sample(self) -> list[_Mark]:
        """Return which gradients are there, of a few parameters."""
        return [_mark(entry.ref()) for entry in self.entries[:: max(1, len(self.entries) // SAMPLE)]]

    def note_call(self, site: Site | None, *, averages: bool) -> None:
        """Count a call with grad enabled."""
        self.called = site or self.called
        self.calls += 1
        if averages:
            self.armed = self.called_since = True
        else:
            self.local_calls += 1
            self.local_since = True

    def note_backward(self, site: Site | None) -> None:
        """Count a backward pass that brought gradients."""
        self.backwards += 1
        self.pending, self.backward = True, site
        if self.armed:
            self.why = ""
        else:
            self.local_backwards += 1
            repeated = self.called_since and not self.outside_since
            self.why = "no-sync" if self.local_since else "repeated" if repeated else "outside"
        self.armed = self.local_since = False

    def note_step(self) -> None:
        """Count a step of an optimizer that holds its parameters."""
        if not self.pending:
            return
        if self.why:
            self.local_steps += 1
            if self.first_local_step is None:
                self.first_local_step, self.local_why, self.local = self.steps, self.why, self.backward
        self.steps += 1
        self.pending = self.called_since = self.outside_since = False

    def fact(self, *, compiled: bool) -> Replica:
        """Return what the run file stores; calls of a compiled wrapper are not seen."""
        wrapper = self.ref()
        unseen = compiled and not self.calls
        self.hook = self.hook if wrapper is None else _hook_name(wrapper)
        return Replica(
            id=self.id,
            root=next((entry.root for entry in self.entries if entry.root), ""),
            parameters=tuple(entry.id for entry in self.entries),
            world_size=self.world_size,
            find_unused_parameters=self.find_unused_parameters,
            static_graph=self.static_graph,
            hook=self.hook,
            made_at=place_or_none(self.made),
            called_at=place_or_none(self.called),
            calls=self.calls,
            local_calls=self.local_calls,
            no_sync_at=place_or_none(self.no_sync),
            outside_calls=self.outside_calls,
            outside_at=place_or_none(self.outside),
            backwards=self.backwards,
            local_backwards=0 if unseen else self.local_backwards,
            steps=self.steps,
            local_steps=0 if unseen else self.local_steps,
            first_local_step=None if unseen else self.first_local_step,
            local_why="unknown" if unseen and self.local_why else self.local_why,
            local_at=place_or_none(self.local),
        )


class ReplicaTable:
    """Every wrapper met, in the order they were made."""

    def __init__(self, user: UserCode) -> None:
        self._user = user
        self._all: list[TrackedReplica] = []
        self._by_id: dict[int, TrackedReplica] = {}
        self._inner: dict[int, tuple[weakref.ref[nn.Module], TrackedReplica]] = {}  # by id of a module inside
        self._holds: dict[tuple[int, int], bool] = {}  # (optimizer, replica) -> the one holds parameters of the other
        self._looks = 0

    def __iter__(self) -> Iterator[TrackedReplica]:
        return iter(self._all)

    def __bool__(self) -> bool:
        return bool(self._all)

    def get(self, wrapper: DistributedDataParallel) -> TrackedReplica | None:
        """Return the entry of a wrapper."""
        entry = self._by_id.get(id(wrapper))
        return entry if entry is not None and entry.ref() is wrapper else None

    def add(self, wrapper: DistributedDataParallel, entries: list[Tracked], site: Site | None) -> None:
        """Remember a freshly constructed wrapper."""
        entry = TrackedReplica(
            id=len(self._all),
            ref=weakref.ref(wrapper),
            entries=entries,
            world_size=torch.distributed.get_world_size(wrapper.process_group),
            find_unused_parameters=bool(wrapper.find_unused_parameters),
            static_graph=bool(wrapper.static_graph),
            made=site,
        )
        self._all.append(entry)
        self._by_id[id(wrapper)] = entry
        for module in wrapper.module.modules():
            self._inner[id(module)] = (weakref.ref(module), entry)

    def before_backward(self) -> None:
        """Remember which gradients are there, unless the pass is part of another one (reentrant checkpointing)."""
        if torch._C._current_graph_task_id() == -1:
            for entry in self._all:
                entry.marks = entry.sample()

    def after_backward(self, site: Site | None) -> None:
        """Count a backward pass for the wrappers it brought gradients to."""
        for entry in self._all:
            if torch._C._current_graph_task_id() == -1 and entry.sample() != entry.marks:
                entry.note_backward(site)

    def note_grad(self, inputs: tuple[torch.Tensor, ...], site: Site | None) -> None:
        """Remember who called `torch.autograd.grad` for wrapped parameters: those gradients are never averaged."""
        asked = {id(tensor) for tensor in inputs}
        for entry in self._all:
            if entry.local is None and any(id(each.ref()) in asked for each in entry.entries):
                entry.local = site

    def note_step(self, optimizer: torch.optim.Optimizer, tracked: TrackedOptimizer) -> None:
        """Count a step for the wrappers of which the optimizer holds parameters."""
        for entry in self._all:
            if entry.pending and self._is_held(entry, optimizer, tracked):
                entry.note_step()

    def _is_held(self, entry: TrackedReplica, optimizer: torch.optim.Optimizer, tracked: TrackedOptimizer) -> bool:
        key = (tracked.id, entry.id)
        if key not in self._holds:
            held = {id(tensor) for tensor in held_tensors(optimizer)}
            self._holds[key] = any(id(each.ref()) in held for each in entry.entries)
        return self._holds[key]

    def note_enter(self, module: nn.Module) -> None:
        """Count a call of a module inside a wrapper that does not come through the wrapper."""
        inner = self._inner.get(id(module))
        if inner is None or inner[0]() is not module:
            return
        active: object = DistributedDataParallel._active_ddp_module
        entry = inner[1]
        wrapper = entry.ref()
        if wrapper is None or active is wrapper:
            return
        entry.outside_calls += 1
        entry.outside_since = True
        if entry.outside is None and self._looks < MAX_LOOKS:
            self._looks += 1
            entry.outside = self._caller(entry, wrapper)

    def _caller(self, entry: TrackedReplica, wrapper: nn.Module) -> Site | None:
        """Return the nearest line of the program that knows the wrapper, or what it wraps, and is not inside of it."""
        outermost: Site | None = None
        for frame in self._user.frames(sys._getframe(1)):
            names = local_names(frame)
            owner = names.get("self")
            if self._is_inside(owner, entry):
                continue
            outermost = Site(frame.f_code, frame.f_lasti)
            attributes = getattr(owner, "__dict__", {})
            known = (*names.values(), *attributes.values(), *(attributes.get("_modules") or {}).values())
            if any(value is wrapper or self._is_inside(value, entry) for value in known):
                return outermost
        return outermost

    def _is_inside(self, thing: object, entry: TrackedReplica) -> bool:
        inner = self._inner.get(id(thing))
        return inner is not None and inner[0]() is thing and inner[1] is entry


def patch_replicas(session: Session, patches: Patches) -> None:
    """Observe how wrappers are made and called, and when they are told not to average."""
    wrap = session.guard.wrap

    def made(args: tuple[Any, ...], _kwargs: Any, _result: Any) -> None:
        wrapper = args[0]
        entries = [session.parameters.add(parameter) for parameter in _averaged(wrapper)]
        session.replicas.add(wrapper, entries, session.user.capture(1, skip_methods_of=wrapper))
        session.outputs.on_enter = session.replicas.note_enter

    def called(args: tuple[Any, ...], _kwargs: Any) -> None:
        entry = session.replicas.get(args[0])
        if entry is not None:
            entry.note_call(session.user.capture(1), averages=bool(args[0].require_backward_grad_sync))

    called_guarded = wrap(PART, called)

    def called_to_learn(args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if torch.is_grad_enabled():
            called_guarded(args, kwargs)

    def kept_local(args: tuple[Any, ...], _kwargs: Any) -> None:
        entry = session.replicas.get(args[0])
        if entry is not None:
            entry.no_sync = session.user.capture(1) or entry.no_sync

    def joined(_args: Any, _kwargs: Any, _result: Any) -> None:
        session.rank, session.world_size = torch.distributed.get_rank(), torch.distributed.get_world_size()

    if torch.distributed.is_available():
        patches.observe(torch.distributed, "init_process_group", after=wrap(PART, joined))
    patches.observe(DistributedDataParallel, "__init__", after=wrap(PART, made))
    patches.observe(DistributedDataParallel, "forward", before=called_to_learn)
    patches.observe(DistributedDataParallel, "no_sync", before=wrap(PART, kept_local))


def _averaged(wrapper: DistributedDataParallel) -> list[torch.Tensor]:
    """Return the parameters whose gradients a fresh wrapper will average: what is unfrozen later is left out."""
    ignored = wrapper.parameters_to_ignore
    named = nn.Module.named_parameters(wrapper.module)
    return [parameter for name, parameter in named if parameter.requires_grad and name not in ignored]


def _hook_name(wrapper: DistributedDataParallel) -> str:
    hooks: Any = getattr(wrapper, "_comm_hooks", ())
    return str(getattr(hooks[-1][0], "__name__", type(hooks[-1][0]).__name__)) if hooks else ""


def _mark(tensor: torch.Tensor | None) -> _Mark:
    gradient = None if tensor is None else tensor.grad
    return None if gradient is None else (id(gradient), gradient._version)
