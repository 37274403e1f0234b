"""Attempts to switch requires_grad that set a mere attribute: `layer.requires_grad = True`, `w.require_grad = True`.

A tensor has `requires_grad`; a module has only the method `requires_grad_()`. Python lets both take any other name.

    event "mere_attribute": subject the module or parameter, site the line that set it if the source shows it;
                            detail attribute, value, parameters: the ids of those that it was meant for
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from difflib import SequenceMatcher
from typing import TYPE_CHECKING

from whygrad.model import Place
from whygrad.probe.modules import own_parameters, walk
from whygrad.probe.source import line_place, syntax_tree

if TYPE_CHECKING:
    from whygrad.probe.session import Session

MERE_ATTRIBUTE = "mere_attribute"
_ALIKE = 0.85  # share of letters in common: "require_grad" has 0.96, "requires_gradient" 0.87, "retain_grad" 0.67


def note_mere_attributes(session: Session) -> None:
    """Note what was set on parameters and modules in place of `requires_grad`."""
    for name, attribute, value, ids in _found(session):
        place = _line(session, name.rpartition(".")[2], attribute, value=value)
        step = session.training.steps
        detail = {"attribute": attribute, "value": value, "parameters": ids}
        if place is None:
            session.events.note(MERE_ATTRIBUTE, step, None, name, **detail)
        else:
            session.events.note_place(MERE_ATTRIBUTE, step, place, name, **detail)


def _found(session: Session) -> Iterator[tuple[str, str, bool, list[int]]]:
    """Yield the name of what carries the attribute, the attribute, its value, and the parameters concerned."""
    for entry in session.parameters.alive():
        tensor = entry.ref()
        for attribute, value in _switches(getattr(tensor, "__dict__", {})):
            yield entry.names[0] if entry.names else entry.attribute, attribute, value, [entry.id]
    for named in session.registry.tree():
        for attribute, value in _switches(named.module.__dict__):
            inner = (p for each in walk(named.module, "") for p in own_parameters(each.module).values())
            ids = [tracked.id for p in inner if (tracked := session.parameters.get(p)) is not None]
            yield named.name or named.label, attribute, value, ids


def _switches(attributes: dict[str, object]) -> Iterator[tuple[str, bool]]:
    for attribute, value in list(attributes.items()):
        if type(value) is bool and _is_alike(attribute):
            yield attribute, value


def _is_alike(attribute: str) -> bool:
    """Return whether an attribute is `requires_grad` or a misspelling of it."""
    return "grad" in attribute and SequenceMatcher(None, attribute, "requires_grad").ratio() > _ALIKE


def _line(session: Session, holder: str, attribute: str, *, value: bool) -> Place | None:
    """Return the line that sets the attribute; of several, one that names what carries it."""
    found: dict[bool, Place] = {}
    for file in session.user.files():
        for node in ast.walk(syntax_tree(file) or ast.Module([], [])):
            if isinstance(node, ast.Assign) and getattr(node.value, "value", None) is value:
                for target in node.targets:
                    if isinstance(target, ast.Attribute) and target.attr == attribute:
                        named = ast.unparse(target.value).rpartition(".")[2] == holder
                        found.setdefault(named, line_place(file, node.lineno))
    return found.get(True) or found.get(False)
