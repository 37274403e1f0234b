"""Which names a line of the user's source writes, reads and assigns: read from the syntax tree, nothing is executed."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from contextlib import suppress
from types import MemberDescriptorType
from typing import Any, TypeGuard, TypeVar

import torch

from whygrad.probe.source import Site, span, syntax_tree

_T = TypeVar("_T")
_BRANCHES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.For, ast.While, ast.If, ast.With, ast.Try)


def statement_at(position: Site) -> ast.stmt | None:
    """Return the innermost statement of the source at a position."""
    tree = syntax_tree(position.code.co_filename)
    line, _, column, _ = span(position)
    found: ast.stmt | None = None
    for node in ast.walk(tree) if tree is not None else ():
        if not isinstance(node, ast.stmt) or not node.lineno <= line <= (node.end_lineno or node.lineno):
            continue
        beside = column is not None and node.lineno == node.end_lineno == line and not _holds(node, column)
        if not beside and (found is None or node.lineno >= found.lineno):
            found = node
    return None if isinstance(found, _BRANCHES) and found.body[0].lineno <= line else found


def _holds(node: ast.stmt, column: int) -> bool:
    """Return whether a column lies in a statement that shares its line with others: `a(); b()`."""
    return node.col_offset <= column < (node.end_col_offset or column + 1)


def holder(expression: ast.expr | None) -> ast.expr | None:
    """Return the variable or attribute that an expression is a part, a view or a result of: `x` of `x.view(-1)[0]`."""
    while expression is not None and not isinstance(expression, ast.Name | ast.Attribute):
        if isinstance(expression, ast.Subscript | ast.Starred):
            expression = expression.value
        elif isinstance(expression, ast.Call):
            method = isinstance(expression.func, ast.Attribute)
            expression = expression.func.value if method else None  # type: ignore[attr-defined]
        else:
            expression = None
    return expression


def written(statement: ast.stmt | None) -> ast.expr | None:
    """Return the variable or attribute that a statement writes in place; None if it is not plain to see."""
    if isinstance(statement, ast.AugAssign):
        return holder(statement.target)
    if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Subscript):
        return holder(statement.targets[0])
    for call in ast.walk(statement) if statement is not None else ():
        if isinstance(call, ast.Call) and _name_of_call(call).endswith("_"):
            free = isinstance(call.func, ast.Name) or (
                isinstance(call.func, ast.Attribute) and _root(call.func) in ("torch", "F", "nn")
            )
            return holder(call.args[0] if free and call.args else call.func.value)  # type: ignore[attr-defined]
    return None


def _name_of_call(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def _root(expression: ast.expr) -> str:
    while isinstance(expression, ast.Attribute):
        expression = expression.value
    return expression.id if isinstance(expression, ast.Name) else ""


def assigned(statement: ast.stmt | None, position: int = 0) -> ast.expr | None:
    """Return the variable or attribute that a statement gives its result.

    Args:
        statement: The statement.
        position: Which of several results is meant: in `out, state = rnn(x, state)` the one that is also read is the
            one that is carried on; where none is, or several are, the position tells.
    """
    if isinstance(statement, ast.AugAssign):
        return holder(statement.target)
    if not isinstance(statement, ast.Assign | ast.AnnAssign) or statement.value is None:
        return None
    target = statement.targets[0] if isinstance(statement, ast.Assign) else statement.target
    names = list(_leaves(target))
    if len(names) > 1:
        read = {ast.unparse(node) for node in ast.walk(statement.value) if isinstance(node, ast.Name | ast.Attribute)}
        carried = [name for name in names if ast.unparse(name) in read]
        names = carried if len(carried) == 1 else names[position : position + 1] if position else []
    return names[0] if names and isinstance(names[0], ast.Name | ast.Attribute) else None


def _leaves(target: ast.expr) -> Iterator[ast.expr]:
    if isinstance(target, ast.Tuple | ast.List):
        for element in target.elts:
            yield from _leaves(element)
    else:
        yield target


def short_name(expression: ast.expr | None) -> str:
    """Return the variable's name, of an attribute its own; "" for None."""
    if isinstance(expression, ast.Attribute):
        return expression.attr
    return expression.id if isinstance(expression, ast.Name) else ""


def receiver(statement: ast.stmt | None, method: str) -> ast.expr | None:
    """Return the variable or attribute that a statement calls a method of, `x` of `x.backward()`."""
    for node in ast.walk(statement) if statement is not None else ():
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == method:
            return node.func.value if isinstance(node.func.value, ast.Name | ast.Attribute) else None
    return None


def read(statement: ast.stmt | None) -> Iterator[ast.expr]:
    """Yield the variables and attributes that a statement reads, outer attributes first."""
    for node in ast.walk(statement) if statement is not None else ():
        if isinstance(node, ast.Attribute) or (isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)):
            yield node


def value_of(expression: ast.expr | None, names: Mapping[str, object]) -> object:
    """Return what a variable or attribute holds, without running any code of the program; None if that is not known."""
    if isinstance(expression, ast.Name):
        return names.get(expression.id)
    if isinstance(expression, ast.Attribute):
        return attributes(value_of(expression.value, names)).get(expression.attr)
    if isinstance(expression, ast.Subscript) and isinstance(expression.slice, ast.Constant):
        return _item(value_of(expression.value, names), expression.slice.value)
    return None


def is_a(thing: object, kind: type[_T]) -> TypeGuard[_T]:
    """Return whether an object is of a kind, by its type alone: `isinstance` runs a `__class__` of the program's."""
    return issubclass(type(thing), kind)


def attributes(thing: object) -> dict[str, Any]:
    """Return the attributes of an object; of a module also what it registers."""
    try:
        own = dict(object.__getattribute__(thing, "__dict__"))
    except (AttributeError, TypeError):
        own = {}
    for each in type(thing).__mro__:
        for name, slot in vars(each).items():
            if isinstance(slot, MemberDescriptorType):
                with suppress(AttributeError):  # it was never filled
                    own[name] = slot.__get__(thing)
    if is_a(thing, torch.nn.Module):
        for table in ("_parameters", "_buffers", "_modules"):
            own |= own.get(table, {})
    return own


def _item(container: object, key: Any) -> object:
    if type(container) is dict:
        return container.get(key)
    if type(container) in (list, tuple) and isinstance(key, int):
        return container[key] if -len(container) <= key < len(container) else None  # type: ignore[arg-type,index]
    return None
