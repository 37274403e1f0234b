"""What a node of the graph saved for backward, by name, as far as it can be read safely."""

from __future__ import annotations

from typing import Any

import torch

from whygrad.probe.nonfinite.finite import Finite, is_readable
from whygrad.probe.saved import saved_by

_RESULTS = ("result", "indices", "eigen", "inverse", "invstd", "output")
_FACTORS = frozenset({"U", "S", "Vh", "L", "Q", "R", "LU", "sign"})


class Values:
    """The saved tensors and options of one node."""

    __slots__ = ("_node", "inputs", "results")

    def __init__(self, node: Any, finite: Finite) -> None:
        self._node = node
        self.inputs: dict[str, torch.Tensor] = {}
        self.results: dict[str, torch.Tensor] = {}
        for saved in saved_by(node):
            tensor = saved.tensor
            if tensor is None or not (tensor.is_cpu or finite.anywhere):  # reading would wait for an accelerator
                continue
            if tensor.layout is not torch.strided or not is_readable(tensor):
                continue
            name = saved.attribute.removeprefix("_saved_")
            target = self.results if name in _FACTORS or name.startswith(_RESULTS) else self.inputs
            target[name] = tensor.detach()

    def get(self, name: str) -> torch.Tensor | None:
        """Return a saved tensor."""
        found = self.inputs.get(name)
        return self.results.get(name) if found is None else found

    def option(self, name: str) -> Any:
        """Return a saved number, such as an exponent; None if there is none."""
        value = getattr(self._node, f"_saved_{name}", None)
        return None if isinstance(value, torch.Tensor) else value


def kind_of(node: Any) -> str:
    """Return the kind of a node without what autograd appends: "Sqrt", "Pow"."""
    name = type(node).__name__
    return name[: name.rindex("Backward")] if "Backward" in name else name
