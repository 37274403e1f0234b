"""What an error of autograd's leaves to read: the frames of its traceback, the graph they hold, and names for tensors.

All of it is read as it lies there: no attribute is looked up in a way that runs code of the program, and no saved
tensor is unpacked.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from types import FrameType
from typing import TYPE_CHECKING, Protocol

import torch
from torch import nn

from whygrad.model import Place
from whygrad.probe.guard import Guard
from whygrad.probe.journal import Call, Journal
from whygrad.probe.modules import ModuleRegistry, NamedModule
from whygrad.probe.optimizers import OptimizerTable
from whygrad.probe.parameters import ParameterTable
from whygrad.probe.postmortem.holders import Held, held_by, tensors_of
from whygrad.probe.postmortem.statements import assigned, attributes, read, short_name, statement_at, value_of, written
from whygrad.probe.source import UserCode, local_names, place_or_none

if TYPE_CHECKING:
    from whygrad.probe.training import Training

_TORCH_OWN = frozenset(nn.Module().__dict__)  # attributes every module has
_ROOTS = ("t_outputs", "tensors", "outputs")  # what torch calls the tensors that backward starts from


class Watcher(Protocol):
    """What is asked of the session."""

    guard: Guard
    user: UserCode
    registry: ModuleRegistry
    parameters: ParameterTable
    optimizers: OptimizerTable
    training: Training
    journal: Journal
    grad_mode: bool  # as the program left it


@dataclass(frozen=True, slots=True)
class Found:
    """What is known about the tensor that an error is about."""

    tensor: str = ""
    operation: str = ""
    made_at: Place | None = None
    changed_at: Place | None = None


class Failure:
    """One error, read once."""

    def __init__(self, watcher: Watcher, error: BaseException) -> None:
        self.watcher = watcher
        self.error = error
        self.text = str(error)
        self.site = watcher.user.of_traceback(error.__traceback__)
        self.frames: list[FrameType] = []  # outermost first
        trace = error.__traceback__
        while trace is not None:
            self.frames.append(trace.tb_frame)
            trace = trace.tb_next

    @property
    def journal(self) -> Journal:
        """Return the records of the run."""
        return self.watcher.journal

    @property
    def place(self) -> Place | None:
        """Return the innermost line of the user's in the traceback."""
        return place_or_none(self.site)

    @cached_property
    def names(self) -> dict[str, object]:
        """Return what the innermost function of the user's sees: its own names over those of its module."""
        for frame in reversed(self.frames):
            if self.watcher.user.owns(frame.f_code):
                return {**frame.f_globals, **local_names(frame)}
        return {}

    @cached_property
    def library_names(self) -> list[dict[str, object]]:
        """Return the local names of the frames that the user's line led into, innermost first."""
        found: list[dict[str, object]] = []
        for frame in reversed(self.frames):
            if self.watcher.user.owns(frame.f_code):
                break
            found.append(local_names(frame))
        return found

    def in_library(self, *names: str) -> object:
        """Return the value of the first of these local names that a frame below the user's line has."""
        return _first(self.library_names, names)

    def roots(self) -> list[torch.Tensor]:
        """Return the tensors that the failed backward pass started from."""
        frames = (frame for frame in reversed(self.frames) if not self.watcher.user.owns(frame.f_code))
        return tensors_of(_first((local_names(frame) for frame in frames), _ROOTS))

    def operand(self, is_meant: Callable[[torch.Tensor], bool]) -> torch.Tensor | None:
        """Return the tensor that the failed operation took and that is meant, from the frames or the source line."""
        in_frames = (value for names in self.library_names for value in names.values())
        for value in (*in_frames, *(value for _, value in self.in_source())):
            for tensor in tensors_of(value):
                if is_meant(tensor):
                    return tensor
        return None

    def in_source(self) -> list[tuple[ast.expr, object]]:
        """Return the variables and attributes in the user's line and what they hold, what it writes in place first."""
        statement = None if self.site is None else statement_at(self.site)
        target = written(statement)
        named = [*([] if target is None else [target]), *read(statement)]
        return [(each, value_of(each, self.names)) for each in named]

    def made(self, tensor: torch.Tensor) -> Call | None:
        """Return the call that made an intermediate, if it was traced."""
        return None if tensor.grad_fn is None else self.journal.made(tensor.grad_fn._sequence_nr())

    # -- names ------------------------------------------------------------------------------------------------------

    def name(self, tensor: torch.Tensor) -> str:
        """Return the name of a tensor; "" if the program does not hold it any more."""
        return self.parameter_name(tensor) or self.name_where(lambda held: held is tensor)

    def parameter_name(self, tensor: torch.Tensor) -> str:
        """Return the qualified name of a parameter or buffer of a model; "" for any other tensor."""
        tracked = self.watcher.parameters.get(tensor)
        if tracked is not None and tracked.names:
            return tracked.fact(prefixed=self.watcher.parameters.prefixing()(tracked.root)).name
        return next((held.name for held in self._in_modules if held.tensor is tensor), "")

    def name_where(self, is_meant: Callable[[torch.Tensor], bool]) -> str:
        """Return the name of the first tensor that the program holds and that is meant; "" if there is none."""
        return next((held.name for held in self.held if is_meant(held.tensor)), "")

    def made_name(self, call: Call | None, position: int = 0) -> str:
        """Return the variable or attribute that a call's line gives its result."""
        if call is None or call.site is None:
            return ""
        return short_name(assigned(statement_at(call.site), position))

    @cached_property
    def held(self) -> list[Held]:
        """Return the tensors that the program holds: attributes before variables, outer ones before inner ones."""
        user = self.watcher.user
        return [*self._in_modules, *held_by(user, (frame for frame in self.frames if user.owns(frame.f_code)))]

    @cached_property
    def _in_modules(self) -> list[Held]:
        found: list[Held] = []
        for named in self.watcher.registry.tree():
            for attribute, value in attributes(named.module).items():
                if attribute not in _TORCH_OWN:
                    found += [Held(item, self._qualified(named, attribute)) for item in tensors_of(value)]
        return found

    def _qualified(self, named: NamedModule, attribute: str) -> str:
        prefixed = self.watcher.parameters.prefixing()(named.label)
        return ".".join(filter(None, (named.label if prefixed else "", named.name, attribute)))


def _first(places: Iterable[dict[str, object]], names: tuple[str, ...]) -> object:
    for local in places:
        for name in names:
            if local.get(name) is not None:
                return local[name]
    return None
