"""Hooks on modules that are compiled already: compiled code has no place for them.

torch.compile looks at the hooks of inner modules when it compiles, and guards none of them
(`torch._dynamo.config.skip_nnmodule_hook_guards`). A hook that comes later runs only if something else makes torch
compile anew. Hooks of the compiled module itself run: they are called around the compiled code.

Events:
    compiled_hook_ignored  steps were made after the hook was set, and nothing was compiled since; the subject is the
                           module's class, the place the line that set the hook
"""

from __future__ import annotations

import sys
import weakref
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from whygrad.probe.events import place_as_dict
from whygrad.probe.patches import Patches
from whygrad.probe.source import Site, place_or_none

if TYPE_CHECKING:
    from whygrad.probe.session import Session

PART = "compiled hooks"  # its name where the guard reports failures
EVENT = "compiled_hook_ignored"
MAX_HOOKS = 1000
_KINDS = (
    "register_forward_hook",
    "register_forward_pre_hook",
    "register_full_backward_hook",
    "register_full_backward_pre_hook",
)


@dataclass(frozen=True, slots=True)
class Compiled:
    """A module that was given to torch.compile."""

    ref: weakref.ref[nn.Module]
    site: Site | None
    graphs: int  # compiled by then, in the whole process


@dataclass(frozen=True, slots=True)
class LateHook:
    """A hook that was set on a module inside of one that had been compiled."""

    ref: weakref.ref[nn.Module]
    handle: Any
    kind: str
    site: Site
    compiled: Compiled
    graphs: int
    steps: int


@dataclass(slots=True)
class CompiledHooks:
    """What is compiled, and which hooks came too late for it."""

    compiled: list[Compiled] = field(default_factory=list)
    late: list[LateHook] = field(default_factory=list)

    def note_compiled(self, module: object, site: Site | None) -> None:
        """Remember what torch.compile was called with: a module, or a method of one."""
        owner = module if isinstance(module, nn.Module) else getattr(module, "__self__", None)
        if isinstance(owner, nn.Module):
            self.compiled.append(Compiled(weakref.ref(owner), site, graphs_compiled()))

    def note_hook(self, module: nn.Module, handle: Any, kind: str, site: Site, steps: int) -> None:
        """Remember a hook that the program set inside of a module whose code is compiled by now."""
        graphs = graphs_compiled()
        for compiled in self.compiled:
            root = compiled.ref()
            inside = root is not None and root is not module and any(m is module for m in root.modules())
            if inside and graphs > compiled.graphs and len(self.late) < MAX_HOOKS:
                self.late.append(LateHook(weakref.ref(module), handle, kind, site, compiled, graphs, steps))
                return


def patch_compiled_hooks(session: Session, patches: Patches) -> None:
    """Observe what is compiled, and hooks that the program sets after that."""
    wrap = session.guard.wrap
    hooks = session.compiled_hooks

    def compiling(args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        hooks.note_compiled(args[0] if args else kwargs.get("model"), session.user.capture(1))

    patches.observe(torch, "compile", before=wrap(PART, compiling))
    patches.observe(nn.Module, "compile", before=wrap(PART, compiling))

    def observe(kind: str) -> None:
        def hooked(args: tuple[Any, ...], _kwargs: Any, handle: Any) -> None:
            site = _direct_caller(session)
            if hooks.compiled and site is not None:
                hooks.note_hook(args[0], handle, kind, site, session.training.steps)

        patches.observe(nn.Module, kind, after=wrap(PART, hooked))

    for kind in _KINDS:
        observe(kind)


def find_ignored_hooks(session: Session) -> None:
    """Note the hooks that came too late, where steps followed and nothing was compiled since."""
    graphs, steps = graphs_compiled(), session.training.steps
    for hook in session.compiled_hooks.late:
        module, known = hook.ref(), hook.handle.hooks_dict_ref()
        is_set = module is not None and known is not None and hook.handle.id in known
        if is_set and graphs == hook.graphs and steps > hook.steps:
            session.events.note(
                EVENT,
                hook.steps,
                hook.site,
                type(module).__name__,
                hook=hook.kind,
                steps=steps - hook.steps,
                graphs=graphs,
                compiled_at=place_as_dict(place_or_none(hook.compiled.site)),
            )


def graphs_compiled() -> int:
    """Return how many graphs torch.compile has made in this process."""
    dynamo = sys.modules.get("torch._dynamo.utils")
    counters = getattr(dynamo, "counters", {})
    return int(counters["stats"].get("unique_graphs", 0)) if "stats" in counters else 0


def _direct_caller(session: Session) -> Site | None:
    """Return the line that set a hook, if it is the program's own; None where a library set it."""
    frame = sys._getframe(1)
    own = __file__.rpartition("/")[0]
    while frame is not None and frame.f_code.co_filename.startswith(own):
        if frame.f_back is None:
            return None
        frame = frame.f_back
    return Site(frame.f_code, frame.f_lasti) if session.user.owns(frame.f_code) else None
