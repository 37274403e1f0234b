"""Names for tensors that no module holds: the variable, attribute or container of the program's that does."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping

import torch

from whygrad.probe.modules import holder_name
from whygrad.probe.source import UserCode, local_names

_FRAMES = 8
_ITEMS = 256  # a longer list holds samples, not parameters


def variable_name(tensor: torch.Tensor, user: UserCode) -> str:
    """Return `w` of `w = ...` and `self.w = ...`, `params.w` of `params["w"] = ...`; "" where none is found."""
    return holder_name(tensor, user) or next(_in_containers(tensor, user), "")


def _in_containers(tensor: torch.Tensor, user: UserCode) -> Iterator[str]:
    for names in _namespaces(user):
        for name, value in list(names.items()):
            if type(value) in (list, tuple, dict) and len(value) <= _ITEMS:  # type: ignore[arg-type]
                items = value.items() if isinstance(value, dict) else enumerate(value)  # type: ignore[arg-type]
                yield from (f"{name}.{key}" for key, item in items if item is tensor)


def _namespaces(user: UserCode) -> Iterator[Mapping[str, object]]:
    for position, frame in enumerate(user.frames(sys._getframe(1))):
        if position < _FRAMES:
            names = local_names(frame)
            yield names
            yield getattr(names.get("self"), "__dict__", {})
    main = sys.modules.get("__main__")
    yield {} if main is None else vars(main)
