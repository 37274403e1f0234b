"""Who switched grad mode off: followed call by call, per thread, as grad mode itself is."""

from __future__ import annotations

import ast
import os
import sys
import threading
from dataclasses import dataclass
from enum import StrEnum
from types import CodeType, FrameType

import torch

from whygrad.model import Place
from whygrad.probe.dataflow.spots import NOWHERE, Spot, Spots
from whygrad.probe.source import Site, UserCode, expression, line_place, span, syntax_tree

_GRAD_MODE_FILE = os.path.join(os.path.dirname(os.path.abspath(torch.__file__)), "autograd", "grad_mode.py")
_DECORATING = ("decorate_context", "generator_context")
_MAX_SUSPENDED = 16


class How(StrEnum):
    """In which way grad mode was switched off."""

    DIRECTLY = "directly"  # by the user's line: `with torch.no_grad():`, `torch.set_grad_enabled(False)`
    DECORATOR = "decorator"  # of the user's function
    LIBRARY = "library"  # inside a library function that the user's line calls
    FUNCTION = "function"  # by the forward of an autograd.Function
    UNSEEN = "unseen"


@dataclass(slots=True, eq=False)
class Switch:
    """One act of switching grad mode off."""

    spot: Spot
    how: How
    name: str = ""  # no_grad, inference_mode, set_grad_enabled; the class name of an autograd.Function
    decorated: CodeType | None = None
    outer: Switch | None = None  # of an autograd.Function: what kept grad mode off around it
    replayed: bool = False  # what the function computes is computed again in backward, with grad mode on
    result: object = None  # the node of the function's outputs that require grad

    @property
    def place(self) -> Place | None:
        """Return the line that switched; of a decorator, the decorator's."""
        if self.decorated is not None:
            decorator = _decorator(self.decorated)
            line = self.decorated.co_firstlineno if decorator is None else decorator.lineno
            return line_place(self.decorated.co_filename, line, self.decorated.co_name)
        return self.spot.place

    @property
    def text(self) -> str:
        """Return what the program says there: `torch.no_grad()`, `@torch.no_grad() on encode`."""
        if self.decorated is not None:
            decorator = _decorator(self.decorated)
            text = self.name if decorator is None else f"@{ast.unparse(decorator)}"
            return f"{text} on {self.decorated.co_name}"
        if self.how is How.DIRECTLY and self.spot.site is not None:
            node = expression(self.spot.site) or _context(self.spot.site, self.name)
            return ast.unparse(node) if node is not None else f"torch.{self.name}"
        return f"{self.name} inside {self.spot.within}" if self.spot.within else self.name


UNSEEN = Switch(NOWHERE, How.UNSEEN)


class GradSwitches(threading.local):
    """The switch that keeps grad mode off in this thread, if one was seen."""

    def __init__(self, spots: Spots, user: UserCode) -> None:
        super().__init__()
        self._spots = spots
        self._user = user
        self.off: Switch | None = None
        self._suspended: list[Switch] = []

    def forget(self) -> None:
        """Start anew: what happened since the tracer was last on was not seen."""
        self.off = None
        self._suspended.clear()

    def note(self, enabled: bool) -> None:
        """Follow a call that set grad mode; on the way, tell an entry from an exit."""
        last, name = _caller_in_grad_mode(sys._getframe(1))
        leaving = last is not None and last.f_code.co_name in ("__exit__", "__call__")
        if enabled:
            if self.off is not None and not leaving:
                self._suspended = [*self._suspended[-_MAX_SUSPENDED:], self.off]
            self.off = None
        elif leaving:
            if self.off is None and self._suspended:
                self.off = self._suspended.pop()
        elif self.off is None:
            self.off = self._capture(last, name or "set_grad_enabled")

    def enter(self, switch: Switch) -> Switch | None:
        """Note a switch that has its own way in and out; hand the result to `leave`."""
        before = self.off
        if before is None:
            self.off = switch
        return before

    def enter_function(self, name: str) -> tuple[Switch, Switch | None]:
        """Note the forward of an autograd.Function, which runs with grad mode off; hand the second to `leave`."""
        before = self.off
        self.off = Switch(self._spots.here(), How.FUNCTION, name, outer=before)
        return self.off, before

    def leave(self, before: Switch | None) -> None:
        """Return to what was before `enter`."""
        self.off = before

    def here(self, name: str) -> Switch:
        """Return a switch by the calling code."""
        return self._capture(sys._getframe(1), name)

    def _capture(self, frame: FrameType | None, name: str) -> Switch:
        spot = self._spots.here()
        decorated = self._decorated(frame)
        if decorated is not None:
            return Switch(spot, How.DECORATOR, name, decorated)
        direct = spot.inside is None or spot.inside.co_filename == _GRAD_MODE_FILE
        return Switch(spot, How.DIRECTLY if direct else How.LIBRARY, name)

    def _decorated(self, frame: FrameType | None) -> CodeType | None:
        """Return the user's function that a decorator switches grad mode off for."""
        while frame is not None and not self._user.owns(frame.f_code):
            if frame.f_code.co_name in _DECORATING:
                code = getattr(frame.f_locals.get("func"), "__code__", None)
                return code if code is not None and self._user.owns(code) else None
            frame = frame.f_back
        return None


def _caller_in_grad_mode(frame: FrameType | None) -> tuple[FrameType | None, str]:
    """Return the outermost of the frames of torch's grad mode classes at the call, and the name of its class."""
    last: FrameType | None = None
    while frame is not None:
        if frame.f_code.co_filename == _GRAD_MODE_FILE:
            last = frame
        elif last is not None:
            break
        frame = frame.f_back
    return last, "" if last is None else last.f_code.co_qualname.split(".")[0]


def _decorator(code: CodeType) -> ast.expr | None:
    """Return the decorator of a function that concerns grad mode, the innermost of several."""
    tree = syntax_tree(code.co_filename)
    for node in ast.walk(tree) if tree is not None else ():
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == code.co_name:
            first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
            if code.co_firstlineno == first:
                about = [d for d in node.decorator_list if "grad" in (text := ast.unparse(d)) or "inference" in text]
                return about[-1] if about else None
    return None


def _context(site: Site, name: str) -> ast.expr | None:
    """Return the expression that a `with` statement enters, by the name of its class where there are several."""
    tree, line = syntax_tree(site.code.co_filename), span(site)[0]
    for node in ast.walk(tree) if tree is not None else ():
        if isinstance(node, ast.With | ast.AsyncWith) and node.lineno == line:
            entered = [item.context_expr for item in node.items]
            return next((e for e in entered if name in ast.unparse(e)), entered[0])
    return None
