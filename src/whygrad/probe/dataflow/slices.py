"""Def-use slices of the user's source: which statements may have made the values that an expression uses.

Values that leave torch for Python or numpy are followed by reading, never by executing. A slice ignores the order of
statements and stays inside one function, except that attributes of `self` are shared by the methods of a class.
"""

from __future__ import annotations

import ast
import copy
import functools
from collections.abc import Iterator
from dataclasses import dataclass
from types import CodeType
from typing import NamedTuple, TypeVar

from whygrad.probe.source import Site, span, syntax_tree

_FILLING = {"append", "appendleft", "extend", "insert", "update", "setdefault", "add"}  # methods that put into `self`
_END = 1_000_000
RETURNED = "return"  # stands among the names for what a function gives back
_Function = ast.FunctionDef | ast.AsyncFunctionDef
_SCOPES = (
    *(ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.Lambda),
    *(ast.FunctionDef, ast.AsyncFunctionDef),
)
_T = TypeVar("_T", bound=ast.AST)


class Span(NamedTuple):
    """A stretch of source text; columns are UTF-8 offsets."""

    line: int
    column: int
    end_line: int
    end_column: int

    def holds(self, other: Span) -> bool:
        """Return whether another stretch lies in this one."""
        return self[:2] <= other[:2] and other[2:] <= self[2:]


@dataclass(frozen=True, slots=True)
class _Statement:
    span: Span
    puts: frozenset[str]  # names that get a value, as `x`, `self.x` or `x.y`
    takes: frozenset[str]


@dataclass(frozen=True, slots=True)
class _Scope:
    """The statements that a slice may take from, and the expressions by position."""

    statements: tuple[_Statement, ...]
    expressions: dict[Span, ast.expr]


def text_span(site: Site) -> Span:
    """Return the stretch of source that was running at a position; whole lines where columns are not known."""
    line, end_line, column, end_column = span(site)
    return Span(line, column or 0, end_line or line, _END if end_column is None else end_column)


@functools.lru_cache(maxsize=8192)
def feeds(source: Site, target: Site, names: frozenset[str] | None = None) -> bool:
    """Return whether what ran at `source` may have made a value that the expression at `target` uses.

    Args:
        source: Where a value was made.
        target: Where it may be used.
        names: Those that hold the value there; None: any in the expression.
    """
    if source.code.co_filename != target.code.co_filename:
        return False
    inner, outer = text_span(source), text_span(target)
    if inner == outer:
        return False
    if not names and outer.holds(inner):
        return True
    return _made_by(target.code, names_at(target) if names is None else names, inner)


def _made_by(code: CodeType, names: frozenset[str], made: Span) -> bool:
    return any(part.holds(made) for part in _slice(code, names))


@functools.lru_cache(maxsize=8192)
def escapes(source: Site) -> bool:
    """Return whether a value made at `source` may leave its function: by `return`, or into one of its arguments."""
    if source.code.co_name.startswith("<"):  # a lambda, a comprehension
        return source.code.co_name != "<module>"
    scope = _scope(source.code)
    here = text_span(source)
    carried = set().union(*(s.puts for s in scope.statements if s.span.holds(here)))
    grows = True
    while grows:
        before = len(carried)
        carried.update(*(s.puts for s in scope.statements if s.takes & carried))
        grows = len(carried) > before
    parameters = source.code.co_varnames[: source.code.co_argcount + source.code.co_kwonlyargcount]
    return RETURNED in carried or not carried.isdisjoint(parameters) or not scope.statements


@functools.lru_cache(maxsize=8192)
def steers(source: Site) -> bool:
    """Return whether a value made at `source` may decide which way its function goes: a condition, a loop's count."""
    tree = syntax_tree(source.code.co_filename)
    inner = text_span(source)
    function = _function_of(tree, source.code)[0] if tree is not None else None
    for node in ast.walk(function) if function is not None else ():
        deciding = None
        if isinstance(node, ast.If | ast.While | ast.IfExp):
            if _span(node)[:2] == inner[:2]:  # a jump has the position of the whole statement
                return True
            deciding = node.test
        elif isinstance(node, ast.For | ast.comprehension):
            deciding = node.iter
        if deciding is not None and (_span(deciding).holds(inner) or _made_by(source.code, _names(deciding), inner)):
            return True
    return False


@functools.lru_cache(maxsize=8192)
def names_at(site: Site) -> frozenset[str]:
    """Return the names that the expression at a position uses."""
    scope, target = _scope(site.code), text_span(site)
    expression = scope.expressions.get(target)
    if expression is not None:
        return _names(expression)
    around = [s for s in scope.statements if s.span.holds(target)]  # a loop's header, an augmented assignment
    return min(around, key=lambda s: s.span.end_line - s.span.line).takes if around else frozenset()


@functools.lru_cache(maxsize=4096)
def _slice(code: CodeType, names: frozenset[str]) -> tuple[Span, ...]:
    """Return the statements that may have made what is in the names."""
    needed = set(names)
    found: dict[Span, None] = {}
    grows = True
    while grows:
        grows = False
        for statement in _scope(code).statements:
            if statement.span not in found and statement.puts & needed:
                found[statement.span] = None
                needed |= statement.takes
                grows = True
    return tuple(found)


def made_by(code: CodeType, names: frozenset[str]) -> list[ast.stmt | ast.expr]:
    """Return the statements, and parts of statements, of a function that may have made what is in the names."""
    tree = syntax_tree(code.co_filename)
    wanted = set(_slice(code, names))
    nodes = (node for node in ast.walk(tree) if isinstance(node, ast.stmt | ast.expr)) if tree is not None else ()
    outermost: dict[Span, ast.stmt | ast.expr] = {}
    for node in nodes:
        if _span(node) in wanted:
            outermost.setdefault(_span(node), node)
    return sorted(outermost.values(), key=lambda node: node.lineno)


@functools.lru_cache(maxsize=512)
def _scope(code: CodeType) -> _Scope:
    tree = syntax_tree(code.co_filename)
    if tree is None:
        return _Scope((), {})
    function, owner = _function_of(tree, code)
    own = _with_scopes_apart(function)
    expressions = {_span(n): n for n in ast.walk(own) if isinstance(n, ast.expr)}
    statements = list(_statements(own))
    for method in owner.body if owner is not None else ():
        if isinstance(method, ast.FunctionDef | ast.AsyncFunctionDef) and method is not function:
            statements += _as_seen_from_outside(method)
    return _Scope(tuple(statements), expressions)


def _function_of(tree: ast.Module, code: CodeType) -> tuple[ast.Module | _Function, ast.ClassDef | None]:
    """Return the innermost function that a code object is, or lies in, and the class that it is a method of."""
    best: tuple[ast.Module | _Function, ast.ClassDef | None] = (tree, None)
    if code.co_name == "<module>":
        return best
    line = code.co_firstlineno
    todo: list[tuple[ast.AST, ast.ClassDef | None]] = [(tree, None)]
    while todo:
        node, owner = todo.pop()
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
                first = min([child.lineno, *(d.lineno for d in child.decorator_list)])
                if first <= line <= (child.end_lineno or child.lineno):
                    best = (child, owner)
                    todo.append((child, None))
            else:
                todo.append((child, child if isinstance(child, ast.ClassDef) else owner))
    return best


def _as_seen_from_outside(method: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[_Statement]:
    """Yield a method's statements with its local names made its own: only what hangs on `self` is shared."""

    def own(names: frozenset[str]) -> frozenset[str]:
        return frozenset(name if name.startswith("self.") else f"{method.name}:{name}" for name in names)

    for statement in _statements(_with_scopes_apart(method)):
        yield _Statement(statement.span, own(statement.puts), own(statement.takes))


def _with_scopes_apart(function: _T) -> _T:
    """Return a copy in which the names of comprehensions, lambdas and inner functions differ from all others."""
    copied = copy.deepcopy(function)
    inner = [node for node in ast.walk(copied) if isinstance(node, _SCOPES) and node is not copied]
    for scope in reversed(inner):  # the innermost first
        bound = _bound_in(scope)
        for node in ast.walk(scope):
            if isinstance(node, ast.Name) and node.id in bound:
                node.id = f"{node.id}@{scope.lineno}:{scope.col_offset}"
    return copied


def _bound_in(scope: ast.AST) -> set[str]:
    if isinstance(scope, ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp):
        return {name for generator in scope.generators for name in _targets(generator.target)}
    taken = {node.arg for node in ast.walk(scope) if isinstance(node, ast.arg)}
    if isinstance(scope, ast.Lambda):
        return taken
    given = {n.id for n in ast.walk(scope) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    outer = {name for n in ast.walk(scope) if isinstance(n, ast.Nonlocal | ast.Global) for name in n.names}
    return (taken | given) - outer


def _statements(function: ast.AST) -> Iterator[_Statement]:
    for node in ast.walk(function):
        for target, value, whole in _assignments(node):
            takes = _names(value) | (_names(target) if isinstance(target, ast.Subscript) else frozenset())
            if isinstance(node, ast.AugAssign):
                takes |= _targets(target)
            yield _Statement(whole, _targets(target), takes)
        if isinstance(node, ast.Return | ast.Yield | ast.YieldFrom) and node.value is not None:
            yield _Statement(_span(node), frozenset({RETURNED}), _names(node.value))


def _assignments(node: ast.AST) -> Iterator[tuple[ast.expr, ast.expr, Span]]:
    """Yield (target, value, stretch) of everything that gives names a value."""
    if isinstance(node, ast.Assign):
        for target in node.targets:
            yield target, node.value, _span(node)
    elif isinstance(node, ast.AugAssign | ast.NamedExpr | ast.AnnAssign):
        if node.value is not None:
            yield node.target, node.value, _span(node)
    elif isinstance(node, ast.For | ast.AsyncFor | ast.comprehension):
        yield node.target, node.iter, _span(node.iter)
    elif isinstance(node, ast.withitem) and node.optional_vars is not None:
        yield node.optional_vars, node.context_expr, _span(node.context_expr)
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _FILLING:
        yield node.func.value, node, _span(node)


def _span(node: ast.stmt | ast.expr) -> Span:
    return Span(node.lineno, node.col_offset, node.end_lineno or node.lineno, node.end_col_offset or _END)


def _names(node: ast.AST) -> frozenset[str]:
    """Return the names and dotted names in an expression; `self` alone says nothing."""
    found = {_dotted(n) for n in ast.walk(node) if isinstance(n, ast.Name | ast.Attribute)}
    return frozenset(found - {"", "self"})


def _targets(node: ast.AST) -> frozenset[str]:
    """Return the names that an assignment to a target changes: of `x[i]` and `(x, y)`, the names of `x` and `y`."""
    if isinstance(node, ast.Tuple | ast.List):
        return frozenset().union(*(_targets(item) for item in node.elts))
    if isinstance(node, ast.Starred | ast.Subscript):
        return _targets(node.value)
    name = _dotted(node)
    return frozenset({name}) if name else frozenset()


def _dotted(node: ast.AST) -> str:
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        base = _dotted(node.value)
        return f"{base}.{node.attr}" if base else ""
    return ""
