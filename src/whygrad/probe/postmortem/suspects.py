"""The one line of the source that could have written a tensor in place, where no call was traced.

The graph tells what kind of operation wrote: `h /= 2` makes `h` the output of a DivBackward0. If the models of the
program and the functions of the traceback have a single line that fits, it is named; if they have two, none is.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from types import CodeType
from typing import Any, NamedTuple

from whygrad.model import Place
from whygrad.probe.postmortem.failure import Failure
from whygrad.probe.postmortem.statements import short_name, written
from whygrad.probe.source import line_place, place_or_none, syntax_tree

_OPERATORS = {ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "div", ast.Pow: "pow", ast.MatMult: "mm"}
_ASSIGNED = ("copyslices", "indexput")  # what an assignment to an index or a slice becomes


class Suspect(NamedTuple):
    """A line that could have written."""

    name: str  # of the tensor, "" where a module writes its input
    place: Place | None  # None: of a module that nobody saw being made


def only_suspect(failure: Failure, writers: Iterable[Any]) -> Suspect | None:
    """Return the only line that could have made one of the nodes `writers` by a write in place."""
    kinds = {_kind(type(node).__name__) for node in writers}
    found = {(each.place, each.name): each for each in (*_statements(failure, kinds), *_modules(failure, kinds))}
    return next(iter(found.values())) if len({place for place, _ in found}) == 1 else None


def only_module(failure: Failure, operation: str) -> Suspect | None:
    """Return the only line that made modules which write their input by an operation."""
    found = {each.place: each for each in _modules(failure, {_kind(operation)})}
    return next(iter(found.values())) if len(found) == 1 else None


def _kind(text: str) -> str:
    """Return what names of a node, a module and a method have in common: "maskedfill"."""
    return re.sub(r"(backward)?\d*$", "", text.lower().replace("_", ""))


def _statements(failure: Failure, kinds: set[str]) -> Iterator[Suspect]:
    for file, function in _functions(failure):
        for statement in ast.walk(function):
            if isinstance(statement, ast.stmt) and kinds.intersection(_kinds_of(statement)):
                yield Suspect(short_name(written(statement)), line_place(file, statement.lineno, function.name))


def _kinds_of(statement: ast.stmt) -> tuple[str, ...]:
    """Return the kinds of nodes that a statement makes if it writes a tensor in place; none if it does not."""
    if isinstance(statement, ast.AugAssign):
        index = isinstance(statement.target, ast.Subscript)
        return _ASSIGNED if index else (_OPERATORS.get(type(statement.op), ""),)
    if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Subscript):
        return _ASSIGNED
    if not isinstance(statement, ast.Expr | ast.Assign | ast.Return) or statement.value is None:
        return ()
    calls = (node.func for node in ast.walk(statement.value) if isinstance(node, ast.Call))
    names = (call.attr if isinstance(call, ast.Attribute) else short_name(call) for call in calls)
    return tuple(_kind(name) for name in names if name.endswith("_"))


def _functions(failure: Failure) -> Iterator[tuple[str, ast.FunctionDef]]:
    """Yield the methods of the program's models and the functions of the traceback, with their files."""
    user = failure.watcher.user
    codes: set[CodeType] = {frame.f_code for frame in failure.frames if user.owns(frame.f_code)}
    for module in failure.watcher.registry.alive():
        codes.update(c for m in vars(type(module)).values() if (c := getattr(m, "__code__", None)) and user.owns(c))
    for code in codes:
        tree = syntax_tree(code.co_filename)
        for node in ast.walk(tree) if tree is not None else ():
            if isinstance(node, ast.FunctionDef) and node.name == code.co_name and _first_line(node, code):
                yield code.co_filename, node


def _first_line(function: ast.FunctionDef, code: CodeType) -> bool:
    return code.co_firstlineno in (function.lineno, *(each.lineno for each in function.decorator_list))


def _modules(failure: Failure, kinds: set[str]) -> Iterator[Suspect]:
    """Yield the lines that made modules which write their input."""
    registry = failure.watcher.registry
    for module in registry.alive():
        if module.__dict__.get("inplace") is True and _kind(type(module).__name__) in kinds:
            yield Suspect("", place_or_none(registry.made_at(module)))
