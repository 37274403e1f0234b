"""Hooks of the program's own that may change gradients, found where torch keeps them.

Events noted here:

    gradient_hook   a hook on a parameter; the subject is its name
    module_hook     a backward hook on a module; the subject is the module's qualified name, the detail holds its root
                    and whether it comes before the module's own backward
    tensor_hook     a hook was set on an intermediate in a traced step; the detail holds the parameters behind it

The place is the line that registers the hook, where the source shows it, else the line that defines it.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable, Iterable, Mapping
from types import CodeType
from typing import TYPE_CHECKING, Any

import torch

from whygrad.model import Place
from whygrad.probe.dataflow.window import is_leaf
from whygrad.probe.graph import reached_leaves
from whygrad.probe.patches import Patches
from whygrad.probe.source import line_place, syntax_tree

if TYPE_CHECKING:
    from whygrad.probe.session import Session

_ON_TENSORS = ("_backward_hooks", "_post_accumulate_grad_hooks")
_ON_MODULES = ("_backward_pre_hooks", "_backward_hooks")
_REGISTERING = (
    *("register_hook", "register_post_accumulate_grad_hook", "register_multi_grad_hook", "register_prehook"),
    *("register_full_backward_hook", "register_full_backward_pre_hook", "register_backward_hook"),
)


def install(session: Session, patches: Patches) -> None:
    """Watch hooks being set on intermediates: torch keeps them where nobody can look."""

    def hooked(args: tuple[Any, ...], _kwargs: Any) -> None:
        tensor = args[0]
        if is_leaf(tensor) or not session.tracer.active:
            return
        leaves = (session.parameters.get(leaf) for leaf in (reached_leaves((tensor,)) or {}).values())
        behind = [entry.id for entry in leaves if entry is not None]
        session.events.note("tensor_hook", session.training.steps, session.user.capture(3), parameters=behind)

    patches.observe(torch.Tensor, "register_hook", before=session.guard.wrap("gradient hooks", hooked))


def note_hooks(session: Session) -> None:
    """Note the hooks on all parameters and modules as they are now."""
    steps = session.training.steps
    for entry in session.parameters.alive():
        tensor = entry.ref()
        for hook in _hooks(tensor, _ON_TENSORS):
            place = _place(session, hook)
            if place is not None:
                session.events.note_place("gradient_hook", steps, place, str(entry.id))
    for named in session.registry.tree():
        for attribute in _ON_MODULES:
            for hook in _hooks(named.module, (attribute,)):
                place = _place(session, hook)
                if place is not None:
                    before = attribute == "_backward_pre_hooks"
                    session.events.note_place("module_hook", steps, place, named.name, root=named.label, before=before)


def _hooks(holder: object, attributes: Iterable[str]) -> list[Callable[..., Any]]:
    tables = (getattr(holder, attribute, None) for attribute in attributes)
    return [hook for table in tables if isinstance(table, Mapping) for hook in list(table.values())]


def _place(session: Session, hook: Callable[..., Any]) -> Place | None:
    code = _code(hook)
    if code is None or not session.user.owns(code):
        return None
    line = _registered_at(code)
    return line_place(code.co_filename, line or code.co_firstlineno, code.co_name if line is None else "")


def _code(hook: Any) -> CodeType | None:
    """Return the code that a hook runs: of a function, a method, a partial, an object that can be called."""
    while isinstance(hook, functools.partial):
        hook = hook.func
    caller = vars(type(hook)).get("__call__")
    found = getattr(hook, "__code__", None) or getattr(caller, "__code__", None)
    return found if isinstance(found, CodeType) else None


@functools.lru_cache(maxsize=256)
def _registered_at(code: CodeType) -> int | None:
    """Return the line that registers a function as a hook, by its name or as a lambda; None if none, or several, do."""
    tree = syntax_tree(code.co_filename)
    lines: set[int] = set()
    others: set[int] = set()
    for node in ast.walk(tree) if tree is not None else ():
        if isinstance(node, ast.Call) and getattr(node.func, "attr", "") in _REGISTERING:
            parts = (part for argument in node.args for part in ast.walk(argument))
            lines |= {node.lineno for part in parts if _stands_for(part, code)}
            others.add(node.lineno)
    found = lines or others  # an object that can be called has any name
    return found.pop() if len(found) == 1 else None


def _stands_for(node: ast.AST, code: CodeType) -> bool:
    if isinstance(node, ast.Lambda):
        return code.co_name == "<lambda>" and node.lineno == code.co_firstlineno
    name = node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""
    return name == code.co_name
