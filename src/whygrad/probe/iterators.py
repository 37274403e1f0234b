"""Iterators of parameters that were used up, or begun, before an optimizer got them.

Event `used_up_iterator`: an optimizer was given one; the detail says whether nothing was left, and which argument.
"""

from __future__ import annotations

import gc
import inspect
from collections.abc import Iterator
from types import GeneratorType
from typing import TYPE_CHECKING, Any

import torch

from whygrad.probe.patches import Patches

if TYPE_CHECKING:
    from whygrad.probe.session import Session

USED_UP = "used_up_iterator"
NOTHING = "nothing"
A_REST = "a rest"
_DEPTH = 5  # a filter of a chain of generators
_MOST = 64  # things that one refers to
_BUILT_IN = ("builtins", "itertools")


def patch_iterators(session: Session, patches: Patches) -> None:
    """Look at what optimizers are given, before they take it, and at what was left of it."""
    unknown: dict[int, list[int]] = {}  # id of an optimizer -> groups that an iterator of unknown state is for

    def note(optimizer: Any, left: str, group: int) -> None:
        site = session.user.capture(1, skip_methods_of=optimizer)
        session.events.note(USED_UP, session.training.steps, site, type(optimizer).__name__, left=left, group=group)

    def given(args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        params = args[1] if len(args) > 1 else kwargs.get("params")
        unknown[id(args[0])] = []
        for group, each in enumerate(_arguments(params)):
            left = state_of(each)
            if left:
                note(args[0], left, group)
            elif hasattr(each, "__next__"):
                unknown[id(args[0])].append(group)

    def taken(args: tuple[Any, ...], _kwargs: Any, _result: Any) -> None:
        groups = args[0].param_groups
        for group in unknown.pop(id(args[0]), ()):
            if group < len(groups) and not groups[group]["params"]:
                note(args[0], NOTHING, group)

    wrap = session.guard.wrap
    patches.observe(torch.optim.Optimizer, "__init__", wrap("iterators", given), wrap("iterators", taken))


def _arguments(params: Any) -> Iterator[Any]:
    """Yield what holds the tensors of each group."""
    if isinstance(params, list | tuple):
        yield from (each.get("params") if isinstance(each, dict) else None for each in params)
    else:
        yield params


def state_of(given: Any) -> str:
    """Return "nothing" for an iterator at its end, "a rest" for one that was begun, "" where it is fresh, or not known.

    Nothing is taken from it: generators tell their state; what wraps them is looked into through its references.
    """
    found = [inspect.getgeneratorstate(each) for each in _generators(given, _DEPTH)]
    if found and all(state == inspect.GEN_CLOSED for state in found):
        return NOTHING
    return A_REST if any(state != inspect.GEN_CREATED for state in found) else ""


def _generators(thing: Any, depth: int) -> Iterator[GeneratorType[Any, Any, Any]]:
    if isinstance(thing, GeneratorType):
        expression = thing.gi_code.co_name == "<genexpr>"  # it begins with the one that it runs over
        deeper = list(_inside(thing, depth)) if expression else []
        yield from deeper or [thing]
    elif type(thing).__module__ in _BUILT_IN and (hasattr(thing, "__next__") or type(thing) in (tuple, list)):
        yield from _inside(thing, depth)


def _inside(thing: Any, depth: int) -> Iterator[GeneratorType[Any, Any, Any]]:
    for each in gc.get_referents(thing)[:_MOST] if depth else ():
        yield from _generators(each, depth - 1)
