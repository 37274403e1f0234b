"""Why a loss does not require grad, where no call was traced: what the source says of how it was made.

The statements that made the loss are followed back, into the functions of the program's that they call, to a tensor
made of constants (`total = torch.tensor(0.0)`) or to a region where grad mode is off. If grad mode is still off at the
end, the line that switched it off for good is looked for instead.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from types import CodeType, FunctionType, MethodType
from typing import Any

import torch
from torch import nn

from whygrad.model import Place
from whygrad.probe.dataflow.slices import RETURNED, made_by, names_at
from whygrad.probe.postmortem.failure import Failure, Found
from whygrad.probe.postmortem.statements import is_a, receiver, short_name, statement_at, value_of
from whygrad.probe.source import Site, line_place, syntax_tree

_MAX_FUNCTIONS = 32
_SWITCHES = ("no_grad", "inference_mode", "set_grad_enabled")
_MAKERS = (
    *("tensor", "zeros", "ones", "full", "empty", "zeros_like", "ones_like", "full_like", "scalar_tensor"),
    *("new_zeros", "new_ones", "new_full", "new_tensor", "as_tensor", "FloatTensor", "Tensor"),
)


@dataclass(slots=True)
class _Search:
    """Lines that may be the reason, nearest to backward first."""

    owns: Callable[[CodeType], bool]  # whether code is the program's
    seen: set[CodeType] = field(default_factory=set)
    constants: list[Place] = field(default_factory=list)
    switches: list[tuple[str, Place]] = field(default_factory=list)
    made: list[Place] = field(default_factory=list)  # lines that give the loss its value

    def is_new(self, code: CodeType) -> bool:
        """Return whether a function is still to be followed."""
        return code not in self.seen and len(self.seen) < _MAX_FUNCTIONS and self.owns(code)


def explain_ungraded(failure: Failure) -> Found:
    """Explain "element 0 of tensors does not require grad and does not have a grad_fn"."""
    root = next((tensor for tensor in failure.roots() if not tensor.requires_grad), None)
    if root is None:
        return Found()
    name = _name(failure, root)
    if not failure.watcher.grad_mode:
        switch = _switched_for_good(failure)
        return Found(name) if switch is None else Found(name, switch[0], None, switch[1])
    search = _Search(failure.watcher.user.owns)
    _follow_loss(failure, search)
    if not search.constants and search.switches:
        operation, place = search.switches[0]
        return Found(name, operation, None, place)
    made = search.constants[-1:] or search.made[:1]  # the innermost function knows best
    return Found(name, "", made[0] if made else None)


def _name(failure: Failure, root: torch.Tensor) -> str:
    called_on = receiver(None if failure.site is None else statement_at(failure.site), "backward")
    name = short_name(called_on) if value_of(called_on, failure.names) is root else failure.name(root)
    if not name:  # `scaler.scale(loss).backward()`
        name = next((short_name(each) for each, value in failure.in_source() if _is_loss(value)), "")
    return name


def _is_loss(value: object) -> bool:
    return is_a(value, torch.Tensor) and value.numel() == 1 and not value.requires_grad


# -- grad mode is still off --------------------------------------------------------------------------------------------


def _switched_for_good(failure: Failure) -> tuple[str, Place] | None:
    """Return the only line of the program that switches grad mode off without a `with`."""
    found = [
        (name, line_place(file, node.lineno))
        for file in failure.watcher.user.files()
        for node in ast.walk(syntax_tree(file) or ast.Module([], []))
        if isinstance(node, ast.Expr) and (name := _switches_for_good(node.value))
    ]
    return found[0] if len(found) == 1 else None


def _switches_for_good(node: ast.expr) -> str:
    """Return what a statement switches grad mode off with: `set_grad_enabled(False)`, `no_grad().__enter__()`."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "__enter__":
        return _switch(node.func.value)
    name = _switch(node)
    return name if name == "set_grad_enabled" else ""


# -- how the loss was made ---------------------------------------------------------------------------------------------


def _follow_loss(failure: Failure, search: _Search) -> None:
    """Follow the loss from the frame that called backward, or from the caller that handed it over."""
    for frame, site in _user_frames(failure):
        names = {**frame.f_globals, **frame.f_locals}
        statement = statement_at(site)
        called_on = receiver(statement, "backward")
        wanted = names_at(site) if called_on is None else frozenset({ast.unparse(called_on)})
        nodes = made_by(site.code, wanted)
        if nodes:
            values = [node for node in nodes if ast.unparse(_target(node)) in wanted]
            search.made += [line_place(site.code.co_filename, node.lineno, site.code.co_name) for node in values[-1:]]
            _follow(search, nodes, site.code, names)
            return


def _user_frames(failure: Failure) -> Iterator[tuple[Any, Site]]:
    """Yield the frames of the user's with their positions, innermost first."""
    traces = []
    trace = failure.error.__traceback__
    while trace is not None:
        traces.append(trace)
        trace = trace.tb_next
    for each in reversed(traces):
        if failure.watcher.user.owns(each.tb_frame.f_code):
            yield each.tb_frame, Site(each.tb_frame.f_code, each.tb_lasti)


def _follow(search: _Search, nodes: list[ast.stmt | ast.expr], code: CodeType, names: Mapping[str, object]) -> None:
    """Note what statements of a function say of the value they make, and follow the functions that they call."""
    search.seen.add(code)
    file = code.co_filename
    for node in nodes:
        for switch, region in _regions(file):
            if region.lineno < node.lineno <= (region.end_lineno or region.lineno):
                search.switches.append((switch, line_place(file, region.lineno, code.co_name)))
        value = getattr(node, "value", None)
        if isinstance(value, ast.Call) and short_name(value.func) in _MAKERS:
            search.constants.append(line_place(file, node.lineno, code.co_name))
        for call in (each for each in ast.walk(node) if isinstance(each, ast.Call)):
            function, owner = _function(_callee(call.func, names))
            if function is not None and search.is_new(function.__code__):
                _note_decorator(search, function.__code__)
                inner = {**function.__globals__, **({} if owner is None else {"self": owner})}
                _follow(search, made_by(function.__code__, frozenset({RETURNED})), function.__code__, inner)


def _note_decorator(search: _Search, code: CodeType) -> None:
    for node in ast.walk(syntax_tree(code.co_filename) or ast.Module([], [])):
        if isinstance(node, ast.FunctionDef) and node.name == code.co_name:
            for decorator in node.decorator_list:
                name = _switch(decorator) if isinstance(decorator, ast.Call) else short_name(decorator)
                if name in _SWITCHES:
                    search.switches.append((name, line_place(code.co_filename, decorator.lineno, code.co_name)))


def _callee(func: ast.expr, names: Mapping[str, object]) -> object:
    """Return what a call calls, a method of an object of the program's included."""
    value = value_of(func, names)
    if value is not None or not isinstance(func, ast.Attribute):
        return value
    owner = value_of(func.value, names)
    held = (vars(cls).get(func.attr) for cls in type(owner).__mro__) if owner is not None else ()
    method = next((each for each in held if isinstance(each, FunctionType)), None)
    return None if method is None else MethodType(method, owner)


def _function(value: object) -> tuple[FunctionType | None, object]:
    """Return the Python function that a call of a value runs, and the object it is a method of."""
    if is_a(value, nn.Module):
        value = MethodType(type(value).forward, value)
    if isinstance(value, MethodType):
        inner = _unwrapped(value.__func__)
        return (inner, value.__self__) if isinstance(inner, FunctionType) else (None, None)
    value = _unwrapped(value)
    return (value, None) if isinstance(value, FunctionType) else (None, None)


def _unwrapped(value: object) -> object:
    return getattr(value, "__wrapped__", value) if isinstance(value, FunctionType) else value


def _regions(file: str) -> list[tuple[str, ast.With]]:
    """Return the `with` statements of a file that switch grad mode, with the name of what does it."""
    found: list[tuple[str, ast.With]] = []
    for node in ast.walk(syntax_tree(file) or ast.Module([], [])):
        if isinstance(node, ast.With):
            entered = (item.context_expr for item in node.items)
            found += [(name, node) for each in entered if (name := _switch(each))]
    return found


def _switch(node: ast.expr) -> str:
    """Return the name of what a call switches grad mode off with; "" if it does not."""
    if not isinstance(node, ast.Call) or any(isinstance(a, ast.Constant) and a.value is True for a in node.args):
        return ""
    name = short_name(node.func)
    return name if name in _SWITCHES else ""


def _target(node: ast.stmt | ast.expr) -> ast.expr:
    targets = getattr(node, "targets", None)
    target: ast.expr | None = targets[0] if targets else getattr(node, "target", None)
    return target or ast.Constant(None)
