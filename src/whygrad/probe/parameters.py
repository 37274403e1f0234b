"""The tensors that are meant to learn, and what is counted about each."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

import torch
from torch import nn

from whygrad.model import Parameter, PathEnd, Place
from whygrad.probe.assignments import attribute_place
from whygrad.probe.journal import storage_key
from whygrad.probe.modules import ModuleRegistry, NamedModule, own_parameters
from whygrad.probe.source import Site, UserCode, place_or_none
from whygrad.probe.unregistered import Unregistered, find_unregistered

MAX_RETIRED = 5000
MAX_LOOSE = 2000  # leaf tensors outside of any module: inputs that require grad come and go


@dataclass(slots=True)
class Tracked:
    """One tensor and its counts; `fact` turns it into what the run file stores."""

    id: int
    ref: Callable[[], torch.Tensor | None]  # weak
    shape: tuple[int, ...]
    dtype: str
    names: list[str] = field(default_factory=list)  # qualified names in the root; the first is the name
    root: str = ""
    root_ref: weakref.ref[nn.Module] | None = None
    module_ref: weakref.ref[nn.Module] | None = None
    module: str = ""
    module_type: str = ""
    attribute: str = ""
    registered: bool = False
    held_in: str = ""
    stale: bool = False
    requires_grad: bool = True
    made: Site | None = None
    written: Site | None = None
    assigned_at: Place | None = None
    frozen: Site | None = None
    order: int | None = None
    optimizers: list[int] = field(default_factory=list)
    reached: int = 0
    walked: int = 0
    steps: int = 0
    gradient_steps: int = 0
    frozen_steps: int = 0
    first_gradient_step: int | None = None
    last_gradient_step: int | None = None
    uses: int | None = None
    used: Site | None = None
    changed_outside: int = 0
    compared: int = 0
    overwritten: int = 0
    restored: int = 0
    undone: float = 0.0
    replaced: int = 0
    unmoved: float | None = None
    loads: int = 0
    original_ref: Callable[[], torch.Tensor | None] | None = None  # weak; what it was copied from
    original: int | None = None  # its id
    copied: Site | None = None
    copied_step: int | None = None
    evaluations: int = 0
    version: int | None = None  # `_version` after the last step that may change it
    sample: torch.Tensor | None = None  # of its value at a backward pass, as long as no optimizer of its own stepped
    rows_alive: torch.Tensor | None = None  # bool, one per row: had a gradient in some recorded step
    loaded: bool = False
    lost: bool = False  # it had a gradient, and at a later step of its optimizer it had none
    path: PathEnd | None = None
    ends_at: Place | None = None
    ends_with: str = ""

    @property
    def is_nameless(self) -> bool:
        """Return whether no module, optimizer or variable is known that holds it."""
        return not self.names and not self.held_in

    def fact(self, *, prefixed: bool) -> Parameter:
        """Return the facts; `prefixed` leads names by the root's."""
        lead = f"{self.root}." if prefixed and self.root else ""
        names = [lead + name for name in self.names] or [self.attribute or f"tensor{self.id}"]
        alive = self.rows_alive
        return Parameter(
            id=self.id,
            name=names[0],
            shape=self.shape,
            dtype=self.dtype,
            aliases=tuple(names[1:]),
            root=self.root,
            module=self.module,
            module_type=self.module_type,
            attribute=self.attribute,
            registered=self.registered,
            held_in=self.held_in,
            stale=self.stale,
            requires_grad=self.requires_grad,
            made_at=place_or_none(self.made),
            written_at=place_or_none(self.written),
            assigned_at=self.assigned_at,
            frozen_at=place_or_none(self.frozen),
            order=self.order,
            optimizers=tuple(self.optimizers),
            reached=self.reached,
            walked=self.walked,
            steps=self.steps,
            gradient_steps=self.gradient_steps,
            frozen_steps=self.frozen_steps,
            first_gradient_step=self.first_gradient_step,
            last_gradient_step=self.last_gradient_step,
            uses=self.uses,
            used_at=place_or_none(self.used),
            changed_outside=self.changed_outside,
            compared=self.compared,
            overwritten=self.overwritten,
            restored=self.restored,
            undone=self.undone,
            replaced=self.replaced,
            unmoved=self.unmoved,
            loads=self.loads,
            copy_of=self.original,
            copied_at=place_or_none(self.copied),
            copied_step=self.copied_step,
            evaluations=self.evaluations,
            rows=self.shape[0] if len(self.shape) > 1 else 0,
            silent_rows=int((~alive).sum()) if alive is not None and alive.is_cpu else 0,
            loaded=self.loaded,
            path=self.path,
            ends_at=self.ends_at,
            ends_with=self.ends_with,
        )


@dataclass(slots=True)
class Birth:
    """Where a parameter was made, and the name a module first registered it under."""

    ref: weakref.ref[torch.Tensor]
    site: Site | None = None
    written: Site | None = None
    attribute: str = ""
    frozen: Site | None = None
    loaded: bool = False
    passes: int = 0  # backward passes that reached it
    original: Callable[[], torch.Tensor | None] | None = None  # weak; what it was copied from
    copied: Site | None = None
    copied_step: int | None = None
    evaluations: int = 0


def _released() -> None:
    """Stand for a weak reference that was dropped."""


class ParameterTable:
    """Every tracked tensor, by identity."""

    def __init__(self, registry: ModuleRegistry, user: UserCode) -> None:
        self._registry = registry
        self._user = user
        self._by_id: dict[int, Tracked] = {}
        self._all: list[Tracked] = []  # in order of first sight
        self._alive: list[Tracked] = []
        self._count = 0
        self._births: dict[int, Birth] = {}
        self._storages: dict[int, Birth] = {}  # the same notes, by the memory that the tensor had then
        self.links = 0  # times that a tensor was found to be held by one optimizer more

    def __iter__(self) -> Iterator[Tracked]:
        return iter(self._all)

    def alive(self) -> Iterator[Tracked]:
        """Yield the entries whose tensor may still exist."""
        return iter(self._alive)

    def state(self) -> tuple[int, int]:
        """Return what is another when the table holds other tensors, or optimizers hold others of them."""
        return self._count, self.links

    def retire(self) -> None:
        """Leave out the entries whose tensor is gone: programs build models again and again.

        What is known of them stays in memory up to a limit; beyond it, only in the run file.
        """
        self._alive = [entry for entry in self._alive if entry.ref() is not None]
        self._by_id = {id(tensor): entry for entry in self._alive if (tensor := entry.ref()) is not None}
        if len(self._all) - len(self._alive) > MAX_RETIRED:
            self._all = list(self._alive)

    def fetch_rows(self) -> None:
        """Bring what accelerators know of rows to the host: at the end of a run, when it may wait for them."""
        for entry in self._all:
            if entry.rows_alive is not None:
                entry.rows_alive = entry.rows_alive.cpu()

    def birth(self, tensor: torch.Tensor) -> Birth:
        """Return the notes on a tensor that is no parameter of the table yet."""
        entry = self._births.get(id(tensor))
        if entry is None or entry.ref() is not tensor:
            births, key = self._births, id(tensor)
            storages, storage = self._storages, storage_key(tensor)

            def forget(_: object) -> None:  # a program may make parameters for ever: the note goes with the tensor
                births.pop(key, None)
                storages.pop(storage, None)

            entry = births[key] = storages[storage] = Birth(weakref.ref(tensor, forget))
        return entry

    def born_with(self, tensor: torch.Tensor) -> torch.Tensor | None:
        """Return the tensor noted at birth whose memory another one shares, as its `.data` does, or None."""
        key = storage_key(tensor)
        birth = self._storages.get(key)
        born = birth.ref() if birth is not None else None
        return born if born is not None and key and storage_key(born) == key else None

    def get(self, tensor: torch.Tensor) -> Tracked | None:
        """Return the entry of a tensor, or None."""
        entry = self._by_id.get(id(tensor))
        return entry if entry is not None and entry.ref() is tensor else None

    def release(self, tensor: torch.Tensor) -> None:
        """Drop the weak reference to a tensor: `torch.utils.swap_tensors` refuses tensors that have one."""
        entry = self.get(tensor)
        if entry is not None:
            entry.ref = _released
        self._births.pop(id(tensor), None)
        self._storages.pop(storage_key(tensor), None)

    def hold_again(self, tensor: torch.Tensor) -> None:
        """Take up a tensor that was released."""
        entry = self._by_id.get(id(tensor))
        if entry is not None and entry.ref is _released:
            entry.ref = weakref.ref(tensor)

    def add(self, tensor: torch.Tensor) -> Tracked:
        """Return the entry of a tensor, made on first sight."""
        entry = self.get(tensor)
        if entry is None:
            entry = Tracked(
                id=self._count,
                ref=weakref.ref(tensor),
                shape=tuple(tensor.shape),
                dtype=str(tensor.dtype).removeprefix("torch."),
                requires_grad=tensor.requires_grad,
            )
            birth = self._births.get(id(tensor))
            if birth is not None and birth.ref() is tensor:
                entry.made, entry.attribute = birth.site, birth.attribute
                entry.frozen, entry.loaded, entry.written = birth.frozen, birth.loaded, birth.written
                entry.original_ref, entry.copied, entry.copied_step = birth.original, birth.copied, birth.copied_step
                entry.evaluations = birth.evaluations
                entry.stale = bool(birth.attribute)  # until a module is found that holds it
            self._by_id[id(tensor)] = entry
            self._count += 1
            self._all.append(entry)
            self._alive.append(entry)
        return entry

    def add_loose(self, tensor: torch.Tensor, name: str) -> Tracked | None:
        """Track a leaf that no module and no optimizer holds; None where there are too many of them."""
        if self.get(tensor) is None and sum(not t.root and not t.optimizers for t in self._alive) >= MAX_LOOSE:
            return None
        entry = self.add(tensor)
        if not entry.names:
            entry.held_in = entry.held_in or "variable"
            entry.attribute = entry.attribute or name
        return entry

    def roots(self) -> set[str]:
        """Return the names of the root models that have a parameter which learns, or which an optimizer holds."""
        return {t.root for t in self._all if t.root and (t.optimizers or t.reached)}

    def prefixing(self) -> Callable[[str], bool]:
        """Return what tells whether names of a root model are led by the model's own, as things are now.

        They are where several models learn, and of a model that does not: a teacher's names must not pass for a
        student's.
        """
        taught = self.roots()
        return lambda root: len(taught) > 1 or bool(taught and root not in taught)

    def resolve(self, *, renames: bool = True) -> set[int]:
        """Name every parameter of every model in use, as the modules hold them now.

        Args:
            renames: Parts of a model that is gone get new names. Not at the end of the program: a part may outlive its
                model by a reference cycle.

        Returns:
            The ids of the parameters that modules hold.
        """
        models = [modules for modules in _by_root(self._registry.tree()) if self._in_use(modules)]
        loose = [found for modules in models for named in modules for found in find_unregistered(named, self._user)]
        inner = {id(found.holder): found.owner.root for found in loose if found.holder is not None}
        held: set[int] = set()
        for modules in models:
            outer = inner.get(id(modules[0].module))
            if outer is None or outer is modules[0].module:  # not a layer that another model keeps in a list
                for named in modules:
                    held.update(self._name_registered(named, renames=renames))
        for found in loose:
            self._name_unregistered(found)
        return held

    def _in_use(self, modules: list[NamedModule]) -> bool:
        return any(
            self._registry.note(named.module).label
            or any(self.get(p) is not None for p in own_parameters(named.module).values())
            for named in modules
        )

    def _name_registered(self, named: NamedModule, *, renames: bool) -> Iterable[int]:
        for attribute, tensor in own_parameters(named.module).items():
            entry = self.add(tensor)
            name = f"{named.name}.{attribute}" if named.name else attribute
            if not entry.registered or (renames and (entry.root_ref is None or entry.root_ref() is None)):
                self._place_in(entry, named, attribute)
                entry.registered, entry.held_in, entry.names, entry.stale = True, "", [name], False
            elif name not in entry.names and entry.root_ref is not None and entry.root_ref() is named.root:
                entry.names.append(name)
            if entry.made is None:
                entry.made = self._registry.made_at(named.module)
            yield id(tensor)

    def _name_unregistered(self, loose: Unregistered) -> None:
        entry = self.add(loose.tensor)
        if entry.registered:
            return
        entry.names = [loose.name]
        self._place_in(entry, loose.owner, loose.attribute)
        entry.held_in = loose.held_in
        entry.stale = False
        entry.assigned_at = entry.assigned_at or attribute_place(type(loose.owner.module), loose.attribute)
        if loose.holder is not None:
            entry.module_ref = weakref.ref(loose.holder)
            entry.module_type = type(loose.holder).__name__
            entry.made = entry.made or self._registry.made_at(loose.holder)

    @staticmethod
    def _place_in(entry: Tracked, named: NamedModule, attribute: str) -> None:
        entry.root, entry.root_ref = named.label, weakref.ref(named.root)
        entry.module, entry.module_type = named.name, type(named.module).__name__
        entry.module_ref = weakref.ref(named.module)
        entry.attribute = attribute

    def mark_stale(self, held: set[int]) -> None:
        """Mark the tensors of optimizers that are not among the parameters that modules hold."""
        for entry in self._alive:
            tensor = entry.ref()
            if tensor is None or not entry.optimizers:
                continue
            if id(tensor) in held:
                entry.stale = False
            elif entry.registered:
                entry.stale = entry.root_ref is not None and entry.root_ref() is not None
            elif not entry.held_in:
                entry.held_in = "optimizer"


def _by_root(modules: Iterable[NamedModule]) -> Iterator[list[NamedModule]]:
    group: list[NamedModule] = []
    for named in modules:
        if group and named.root is not group[0].root:
            yield group
            group = []
        group.append(named)
    if group:
        yield group
