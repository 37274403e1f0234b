"""Copies of parameters: which was copied from which, at which line, and which of them are evaluated.

`copy.deepcopy` of a model asks each of its parameters for a copy. The copy may be gone before the program ends, so it
is linked to its original as soon as both are tracked.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from whygrad.probe.journal import storage_key
from whygrad.probe.modules import own_parameters
from whygrad.probe.parameters import Tracked
from whygrad.probe.patches import Patches
from whygrad.probe.source import Site

if TYPE_CHECKING:
    from whygrad.probe.session import Session

MAX_EVALUATIONS = 10_000  # calls that are counted
_ROOM = 1024  # originals, before those that are gone are looked for


@dataclass(slots=True)
class Copies:
    """Follows copies; one per session."""

    session: Session
    _any: bool = False  # nothing is counted in programs that copy nothing
    _originals: dict[int, weakref.ref[torch.Tensor]] = field(default_factory=dict)  # what was copied, by number
    _numbers: dict[int, int] = field(default_factory=dict)  # of an original, by identity
    _count: int = 0
    _evaluations: int = 0
    _room: int = _ROOM

    def install(self, patches: Patches) -> None:
        """Watch parameters being copied, and models being set to eval mode."""
        wrap = self.session.guard.wrap
        patches.observe(nn.Parameter, "__deepcopy__", after=wrap("copies", self._copied))
        patches.observe(nn.Module, "eval", after=wrap("copies", self._set_to_eval))

    def _copied(self, args: tuple[Any, ...], _kwargs: Any, result: Any) -> None:
        original = args[0]
        if isinstance(result, torch.Tensor) and result is not original:
            birth = self.session.parameters.birth(result)
            birth.copied = self.session.user.capture(3)
            birth.copied_step = self.session.training.steps
            birth.original = self._note_original(original)

    def _note_original(self, tensor: torch.Tensor) -> Callable[[], torch.Tensor | None]:
        """Return what gives the original as long as it lives, and is not released."""
        self._any = True
        number = self._number_of(tensor)
        if number is None:
            number = self._numbers[id(tensor)] = self._count
            self._originals[number] = weakref.ref(tensor)
            self._count += 1
            if len(self._originals) > self._room:
                self._forget_dead()
        return partial(self._original, number)

    def _forget_dead(self) -> None:
        """Drop what is known of originals that are gone: a program may copy models for ever."""
        self._originals = {n: reference for n, reference in self._originals.items() if reference() is not None}
        self._numbers = {key: n for key, n in self._numbers.items() if n in self._originals}
        self._room = max(_ROOM, 2 * len(self._originals))

    def _number_of(self, tensor: torch.Tensor) -> int | None:
        number = self._numbers.get(id(tensor))
        return number if number is not None and self._original(number) is tensor else None

    def _original(self, number: int) -> torch.Tensor | None:
        reference = self._originals.get(number)
        return None if reference is None else reference()

    def release(self, tensor: torch.Tensor) -> None:
        """Drop the weak reference to a tensor: `torch.utils.swap_tensors` refuses tensors that have one."""
        self._originals.pop(self._numbers.pop(id(tensor), -1), None)

    def note_load(self, module: nn.Module, state: Mapping[str, Any], site: Site | None) -> None:
        """Link the parameters of a model to those of another whose `state_dict()` it was given."""
        own = dict(module.named_parameters())
        given = {storage_key(t): name for name, t in state.items() if name in own and isinstance(t, torch.Tensor)}
        if not given or any(storage_key(p) in given for p in own.values()):
            return
        for other in list(self.session.registry.alive()):
            for parameter in own_parameters(other).values():
                name = given.get(storage_key(parameter))
                if name is not None:
                    copy: Any = self.session.parameters.get(own[name]) or self.session.parameters.birth(own[name])
                    copy.copied, copy.copied_step = site, self.session.training.steps
                    original = self._note_original(parameter)
                    if isinstance(copy, Tracked):
                        copy.original_ref = original
                    else:
                        copy.original = original

    def _set_to_eval(self, args: tuple[Any, ...], _kwargs: Any, _result: Any) -> None:
        self.session.registry.note(args[0]).eval_at = self.session.user.capture(3, skip_methods_of=args[0])
        self.note_evaluation(args[0])

    def note_evaluation(self, module: nn.Module) -> None:
        """Count a call without grad of a model that was copied, or is a copy."""
        if not self._any or not self.session.training.steps or self._evaluations >= MAX_EVALUATIONS:
            return
        self._evaluations += 1
        table = self.session.parameters
        for parameter in module.parameters():
            entry = table.get(parameter)
            if entry is None and self._number_of(parameter) is not None:
                entry = table.add(parameter)  # nothing else may ever ask for it
            (entry or table.birth(parameter)).evaluations += 1

    def link(self) -> None:
        """Give each copy the number of its original, where both are tracked."""
        for entry in self.session.parameters if self._any else ():
            if entry.original is None and entry.original_ref is not None:
                tensor = entry.original_ref()
                original = self.session.parameters.get(tensor) if tensor is not None else None
                entry.original = None if original is None else original.id
        self._numbers = {key: number for key, number in self._numbers.items() if self._original(number) is not None}
        self._originals = {number: self._originals[number] for number in self._numbers.values()}
