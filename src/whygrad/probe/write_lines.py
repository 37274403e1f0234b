"""Lines of the source that write weights, for writes that nothing saw happen.

Event noted here:

write_in_source   a line in a loop or a function that copies into parameters; the subject is the operation
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from whygrad.probe.source import line_place, syntax_tree

if TYPE_CHECKING:
    from whygrad.probe.session import Session

_SEEN = ("weights_loaded", "own_weights_loaded", "weight_written")


def find_writes(session: Session) -> None:
    """Note the lines that could have written weights between steps, where something did and no line is known."""
    written = any(entry.overwritten for entry in session.parameters)
    if not written or any(event.kind in _SEEN for event in session.events.facts()):
        return
    sites = [site for optimizer in session.optimizers for site in (optimizer.stepped, optimizer.made)]
    for file in dict.fromkeys(site.code.co_filename for site in sites if site is not None):
        for line, operation in _writes(file):
            session.events.note_place("write_in_source", session.training.steps, line_place(file, line), operation)


def _writes(file: str) -> Iterator[tuple[int, str]]:
    """Yield the lines that write through `.data`, or copy into something, with the operation's name."""
    tree = syntax_tree(file)
    for node in ast.walk(tree) if tree is not None else ():
        if isinstance(node, ast.Assign) and any(_is_data(target) for target in node.targets):
            yield node.lineno, "data="
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "copy_":
            yield node.lineno, "copy_"


def _is_data(target: ast.expr) -> bool:
    while isinstance(target, ast.Subscript):
        target = target.value
    return isinstance(target, ast.Attribute) and target.attr == "data"
