"""What the source of a single line shows."""

from __future__ import annotations

import ast

from whygrad.model import Place

_MAKERS = ("Parameter", "requires_grad_")


def buries_a_leaf(place: Place | None) -> bool:
    """Return whether a line makes a leaf that requires grad and, in the same expression, computes on with it.

    `torch.randn(3, requires_grad=True) * 0.1` and `nn.Parameter(x).to(device)` do.
    """
    value = _value(place)
    return value is not None and not _makes_a_leaf(value) and any(_makes_a_leaf(node) for node in _operands(value))


def assigned_name(place: Place | None) -> str:
    """Return the variable or attribute that a line assigns, without `self.`; "" if there is no single one."""
    statement = _statement(place)
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return ""
    return ast.unparse(statement.targets[0]).removeprefix("self.")


def _statement(place: Place | None) -> ast.stmt | None:
    try:
        body = ast.parse("" if place is None else place.code.strip()).body
    except (SyntaxError, ValueError):  # a part of a statement over several lines
        return None
    return body[0] if body else None


def _value(place: Place | None) -> ast.expr | None:
    statement = _statement(place)
    return statement.value if isinstance(statement, ast.Assign | ast.Return | ast.AnnAssign) else None


def _operands(value: ast.expr) -> list[ast.expr]:
    """Return the tensors that operators and methods in an expression are applied to, without their arguments."""
    found: list[ast.expr] = []
    todo = [value]
    while todo:
        node = todo.pop()
        found.append(node)
        if isinstance(node, ast.BinOp):
            todo += [node.left, node.right]
        elif isinstance(node, ast.UnaryOp):
            todo.append(node.operand)
        elif isinstance(node, ast.Subscript):
            todo.append(node.value)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and not _makes_a_leaf(node):
            todo.append(node.func.value)
    return found


def _makes_a_leaf(node: ast.expr) -> bool:
    if not isinstance(node, ast.Call):
        return False
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    asks = any(k.arg == "requires_grad" and getattr(k.value, "value", None) is True for k in node.keywords)
    return name in _MAKERS or asks
