"""The modules of the program: which exist, who contains whom, and which are root models.

Modules are met when they register a parameter or a child (torch's global registration hooks), when they are called,
and, where that is not enough (copies, unpickled models), by one pass over the garbage collector's objects. Everything
is held weakly: the probe keeps no model alive.
"""

from __future__ import annotations

import gc
import sys
import weakref
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import TracebackType

import torch
from torch import nn

from whygrad.probe.source import Site, UserCode, local_names

_WRAPPER_PREFIXES = ("_orig_mod.", "_fsdp_wrapped_module.", "_checkpoint_wrapped_module.")
_WRAPPER_TYPES = ("DistributedDataParallel", "DataParallel", "FullyShardedDataParallel", "OptimizedModule")
_LABEL_FRAMES = 12
MAX_SEARCHES = 16


@dataclass(slots=True)
class SeenModule:
    """A module and what was noted about it."""

    ref: weakref.ref[nn.Module]
    made_at: Site | None = None
    label: str = ""  # variable or attribute that held it when it was called as a root
    searches: int = 0  # for that name
    eval_at: Site | None = None  # line of the last eval() call on it


@dataclass(frozen=True, slots=True)
class NamedModule:
    """A module with its qualified name in a root model."""

    module: nn.Module
    root: nn.Module
    label: str  # of the root
    name: str
    parent: nn.Module | None


@dataclass(slots=True)
class ModuleRegistry:
    """All modules met so far, by id."""

    user: UserCode
    seen: dict[int, SeenModule] = field(default_factory=dict)
    _searches: int = 0

    def note(self, module: nn.Module, made_at: Site | None = None) -> SeenModule:
        """Remember a module; the first known place where it was made is kept."""
        entry = self.seen.get(id(module))
        if entry is None or entry.ref() is not module:
            entry = self.seen[id(module)] = SeenModule(weakref.ref(module))
        if entry.made_at is None:
            entry.made_at = made_at
        return entry

    def note_call(self, module: nn.Module) -> None:
        """Remember a module that the program calls directly, with the name of the variable that holds it."""
        entry = self.note(module)
        if not entry.label and entry.searches < MAX_SEARCHES:
            entry.searches += 1
            entry.label = holder_name(module, self.user) or ""

    def name_from(self, trace: TracebackType | None) -> None:
        """Note the models that the frames of a traceback hold, under the names of their variables."""
        while trace is not None:
            if self.user.owns(trace.tb_frame.f_code):
                for name, value in local_names(trace.tb_frame).items():
                    if isinstance(value, nn.Module) and name != "self":
                        entry = self.note(value)
                        entry.label = entry.label or name
            trace = trace.tb_next

    def made_at(self, module: nn.Module) -> Site | None:
        """Return the line that made a module, if it was seen being made."""
        entry = self.seen.get(id(module))
        return entry.made_at if entry is not None and entry.ref() is module else None

    def alive(self) -> Iterator[nn.Module]:
        """Yield the modules that still exist; forget the others."""
        for key, entry in list(self.seen.items()):
            module = entry.ref()
            if module is None:
                del self.seen[key]
            else:
                yield module

    def search_everywhere(self) -> None:
        """Note every module in the process: one pass over the garbage collector's objects, about 0.1 s.

        A program that makes tensors of its own for ever is not searched for ever.
        """
        self._searches += 1
        if self._searches > MAX_SEARCHES:
            return
        for thing in gc.get_objects():
            # no isinstance: a program may define `__class__` properties that run its own code
            if nn.Module in type(thing).__mro__:
                self.note(thing)

    def tree(self) -> list[NamedModule]:
        """Return every module under its root models, roots first, children in registration order."""
        modules = list(self.alive())
        contained = {id(child) for module in modules for child in children(module).values()}
        found: list[NamedModule] = []
        for root in modules:
            if id(root) not in contained:
                found.extend(walk(root, self.label(root)))
        return found

    def label(self, root: nn.Module) -> str:
        """Return the variable or attribute that holds a root model; its class name where none is known."""
        entry = self.note(root)
        if not entry.label:
            inner = [unwrapped(root), *children(root).values()]
            known = [self.seen[id(m)].label for m in inner if id(m) in self.seen and is_wrapper(root)]
            entry.label = next(filter(None, known), "") or holder_name(root, self.user) or ""
        return entry.label or type(unwrapped(root)).__name__


def children(module: nn.Module) -> dict[str, nn.Module]:
    """Return the direct children, by name, without calling any method that a program may override."""
    return {name: child for name, child in module.__dict__.get("_modules", {}).items() if child is not None}


def own_parameters(module: nn.Module) -> dict[str, torch.Tensor]:
    """Return the module's own registered parameters, by name."""
    return {name: p for name, p in module.__dict__.get("_parameters", {}).items() if p is not None}


def is_wrapper(module: nn.Module) -> bool:
    """Return whether a module only wraps another one (DistributedDataParallel, torch.compile)."""
    return type(module).__name__ in _WRAPPER_TYPES


def unwrapped(module: nn.Module) -> nn.Module:
    """Return the model inside DistributedDataParallel, DataParallel and torch.compile."""
    while is_wrapper(module):
        inside = children(module)
        inner = inside.get("module", inside.get("_orig_mod"))  # no `or`: a compiled module may have no truth value
        if inner is None:
            break
        module = inner
    return module


def clean_name(name: str) -> str:
    """Return a qualified name without the prefixes that wrappers inside the model add."""
    for prefix in _WRAPPER_PREFIXES:
        name = name.replace(prefix, "")
    return name


def walk(root: nn.Module, label: str) -> Iterator[NamedModule]:
    """Yield a root and its descendants with qualified names; a module used twice appears under each name."""
    start = unwrapped(root)
    path: set[int] = set()

    def visit(module: nn.Module, name: str, parent: nn.Module | None) -> Iterator[NamedModule]:
        if id(module) in path:  # a cycle: a child that holds its parent
            return
        path.add(id(module))
        yield NamedModule(module, start, label, clean_name(name), parent)
        for key, child in children(module).items():
            yield from visit(child, f"{name}.{key}" if name else key, module)
        path.discard(id(module))

    yield from visit(start, "", None)


def holder_name(thing: object, user: UserCode) -> str | None:
    """Return the name by which the running user code holds an object: a variable, or an attribute of `self`."""
    for position, frame in enumerate(user.frames(sys._getframe(1))):
        if position >= _LABEL_FRAMES:
            break
        names = local_names(frame)
        for name, value in names.items():
            if value is thing and name != "self":
                return name
        attributes = getattr(names.get("self"), "__dict__", {})
        for held in (attributes, attributes.get("_modules") or {}):
            for name, value in held.items():
                if value is thing:
                    return str(name)
    return _global_name(thing)


def _global_name(thing: object) -> str | None:
    main = sys.modules.get("__main__")
    for name, value in list(vars(main).items()) if main is not None else ():
        if value is thing and not name.startswith("_"):
            return name
    return None
