"""Operations by the names people write: `*` for MulBackward0."""

from __future__ import annotations

import re
from typing import Any

_WRITTEN = {
    "Abs": "abs()",
    "Add": "+",
    "Alias": ".view_as()",
    "AsStrided": ".as_strided()",
    "CopySlices": "[...] = ...",
    "Div": "/",
    "Index": "[...]",
    "Mm": "@",
    "Mul": "*",
    "Mv": "@",
    "Neg": "-",
    "Pow": "**",
    "ReshapeAlias": ".reshape()",
    "Select": "[...]",
    "Slice": "[...]",
    "Sub": "-",
    "T": ".t()",
    "ToCopy": ".to()",
    "UnsafeView": ".view()",
    "View": ".view()",
}
_CHANGES_NO_VALUE = frozenset({"Alias", "Clone", "ReshapeAlias", "ToCopy", "UnsafeView", "View"})
_NODE = re.compile(r"(\w+?)(Backward\d*)?$")
_INNER_CAPITAL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def node_name(node: Any) -> str:
    """Return the name of an autograd node, without the C++ namespace that some carry."""
    name: str = node.name()
    return name.rpartition("::")[2]


def written(node: str) -> str:
    """Return how the operation of an autograd node is written in a program, with the node's name.

    >>> written("MulBackward0")
    '`*` (MulBackward0)'
    >>> written("LogSoftmaxBackward0")
    '`log_softmax()` (LogSoftmaxBackward0)'
    """
    stem, numbered = _stem(node)
    if stem in _WRITTEN:
        return f"`{_WRITTEN[stem]}` ({node})"
    if not numbered:  # a custom `autograd.Function`: its class name is how it is written
        return f"`{stem}` ({node})" if stem != node else f"`{node}`"
    return f"`{_INNER_CAPITAL.sub('_', stem).lower()}()` ({node})"


def changes_no_value(node: str) -> bool:
    """Return whether the operation only copies, casts, moves or reshapes."""
    return _stem(node)[0] in _CHANGES_NO_VALUE


def _stem(node: str) -> tuple[str, bool]:
    match = _NODE.match(node)
    if match is None:
        return node, False
    return match[1], bool(match[2]) and match[2] != "Backward"
