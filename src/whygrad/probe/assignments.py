"""What the user's source says where execution can't: read from the syntax tree, nothing is executed."""

from __future__ import annotations

import ast

from whygrad.model import Place
from whygrad.probe.dataflow.slices import names_at
from whygrad.probe.source import Site, line_place, span, syntax_tree

_REGISTERING_METHODS = {"register_buffer", "register_parameter"}
_FILLING_METHODS = {"append", "extend", "insert", "update", "setdefault", "add"}
_INTEGERS = ("uint8", "int8", "int16", "int32", "int64", "astype(int", "floor", "round", "//")
_PUT, _FILL, _EMPTY = range(3)  # how much a statement says about the content, best first


def attribute_place(owner: type, attribute: str) -> Place | None:
    """Return the line where `owner` (or a base class) puts content into `self.<attribute>`.

    An assignment with content wins over filling a container, which wins over creating it empty.
    """
    for cls in owner.__mro__:
        found = _in_class(cls, attribute)
        if found is not None:
            return found
    return None


def _in_class(cls: type, attribute: str) -> Place | None:
    file = _file_of(cls)
    tree = syntax_tree(file) if file else None
    if tree is None:
        return None
    best: tuple[int, int] | None = None
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef) and node.name == cls.__name__:
            for statement in ast.walk(node):
                rank = _rank(statement, attribute)
                if rank is not None and (best is None or (rank, statement.lineno) < best):  # type: ignore[attr-defined]
                    best = (rank, statement.lineno)  # type: ignore[attr-defined]
    return line_place(file, best[1], "__init__") if best else None


def _file_of(cls: type) -> str:
    """Return the file that defines a class, from the code of one of its methods.

    `inspect.getsourcefile` asks the module, and at exit `__main__` has lost its file already.
    """
    for member in vars(cls).values():
        code = getattr(member, "__code__", None)
        if code is not None:
            return str(code.co_filename)
    return ""


def _rank(node: ast.AST, attribute: str) -> int | None:
    if isinstance(node, ast.Assign | ast.AnnAssign):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        if any(_is_attribute(target, attribute) for target in targets):
            return _EMPTY if _is_empty(node.value) else _PUT
        if any(isinstance(t, ast.Subscript) and _is_attribute(t.value, attribute) for t in targets):
            return _FILL
    if isinstance(node, ast.AugAssign) and _is_attribute(node.target, attribute):
        return _FILL
    if _registers(node, attribute):
        return _PUT
    if (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in _FILLING_METHODS
        and _is_attribute(node.func.value, attribute)
    ):
        return _FILL
    return None


def _registers(node: ast.AST, attribute: str) -> bool:
    called = node.func if isinstance(node, ast.Call) else None
    if not isinstance(called, ast.Attribute) or called.attr not in _REGISTERING_METHODS:
        return False
    first = next((a for a in node.args), None)  # type: ignore[attr-defined]
    return isinstance(first, ast.Constant) and first.value == attribute


def _is_attribute(node: ast.AST, attribute: str) -> bool:
    return (
        isinstance(node, ast.Attribute)
        and node.attr == attribute
        and isinstance(node.value, ast.Name)
        and node.value.id == "self"
    )


def _is_empty(value: ast.expr | None) -> bool:
    if value is None or (isinstance(value, ast.Constant) and value.value is None):
        return True
    if isinstance(value, ast.List | ast.Tuple | ast.Dict):
        return not (value.keys if isinstance(value, ast.Dict) else value.elts)
    return isinstance(value, ast.Call) and not value.args and not value.keywords


def assigned_name(file: str, line: int) -> str:
    """Return the variable or attribute that the statement at a line assigns to; "" if it is no plain assignment."""
    tree = syntax_tree(file)
    for node in ast.walk(tree) if tree is not None else ():
        if isinstance(node, ast.Assign) and node.lineno <= line <= (node.end_lineno or node.lineno):
            target = node.targets[0]
            if isinstance(target, ast.Name):
                return target.id
            if isinstance(target, ast.Attribute):
                return target.attr
    return ""


def method_call_line(file: str, variable: str, method: str) -> int | None:
    """Return the first line of a file that calls `<variable>.<method>(...)`, also on `self.<variable>`.

    A statement that names the method and forgets to call it counts as well.
    """
    tree = syntax_tree(file)
    lines = []
    for node in ast.walk(tree) if tree is not None else ():
        called = node.func if isinstance(node, ast.Call) else node.value if isinstance(node, ast.Expr) else None
        if isinstance(called, ast.Attribute) and called.attr == method:
            holder = ast.unparse(called.value).rsplit(".", 1)[-1]
            lines += [called.lineno] if holder == variable else []
    return min(lines, default=None)


def gradient_method(cls: type) -> Place | None:
    """Return the line of a method `backward` that a class of the user's defines as if autograd would call it.

    It takes gradients and returns some. A method that calls `backward()` itself is a training loop's, and one that
    overrides a library's is called by the library.
    """
    owners = [owner for owner in cls.__mro__ if "backward" in vars(owner)]
    code = getattr(vars(owners[0])["backward"], "__code__", None) if len(owners) == 1 else None
    tree = syntax_tree(code.co_filename) if code is not None else None
    if code is None or tree is None:
        return None
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name == "backward" and _begins(node) == code.co_firstlineno:
            return line_place(code.co_filename, node.lineno, "backward") if _returns_gradient(node) else None
    return None


def _begins(node: ast.FunctionDef) -> int:
    return min([node.lineno, *(each.lineno for each in node.decorator_list)])


def _returns_gradient(node: ast.FunctionDef) -> bool:
    inner = list(ast.walk(node))
    returns = any(isinstance(each, ast.Return) and each.value is not None for each in inner)
    trains = any(isinstance(each, ast.Attribute) and each.attr == "backward" for each in inner)
    return returns and not trains and len(node.args.args) > 1


def value_place(site: Site) -> Place | None:
    """Return the statement that gave a value which an expression takes from a variable of its function.

    Of several that gave it one after the other, a cast to integers is the one to look at; else it is the last.
    """
    names, last = names_at(site), span(site)[0]
    first = 1 if site.code.co_name == "<module>" else site.code.co_firstlineno
    tree = syntax_tree(site.code.co_filename)
    given = [
        node
        for node in (ast.walk(tree) if tree is not None else ())
        if isinstance(node, ast.Assign) and first <= node.lineno < last and _is_given(node, names)
    ]
    given.sort(key=lambda node: node.lineno)
    casts = [node for node in given if any(word in ast.unparse(node.value) for word in _INTEGERS)]
    chosen = (casts or given)[-1:]
    return line_place(site.code.co_filename, chosen[0].lineno, site.code.co_name) if chosen else None


def _is_given(node: ast.Assign, names: frozenset[str]) -> bool:
    return any(isinstance(target, ast.Name) and target.id in names for target in node.targets)
