"""Where data came from: which line made each tensor that holds no gradient, in traced steps.

Lines are remembered, not tensors: what one operation of one line gave so far, and of which lines' results. That is
bounded by the length of the program, and enough to find the line behind which all samples are equal.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch

from whygrad.model import Place
from whygrad.probe.assignments import value_place
from whygrad.probe.dataflow.arguments import Call, gather, tensors_in
from whygrad.probe.dataflow.operations import Effect, Operation
from whygrad.probe.dataflow.weak import TensorTable
from whygrad.probe.source import Site, place
from whygrad.stats.kernel import is_supported

MAX_LOOKS = 16  # at the results of one line
MAX_LINES = 5000
_SOURCES = 16
_VALUES = 32  # of a result
_KINDS = (Effect.COMPUTE, Effect.COPY, Effect.DETACH, Effect.DATA)
_INDEXING = ("getitem", "index_select", "gather", "take", "take_along_dim", "masked_select")
_PASSING = ("getitem", "index_select", "stack", "cat", "to", "float", "double", "detach", "clone", "contiguous")
_PASSING_SHAPE = ("unsqueeze", "squeeze", "view", "reshape", "flatten", "permute", "split", "unbind", "from_numpy")


@dataclass(slots=True, eq=False)
class Line:
    """One operation of one line that gives tensors of one kind, and what it gave so far."""

    site: Site
    operation: str
    sources: list[Line] = field(default_factory=list)
    rows: int = 0  # entries of dimension 0 of the last result
    looks: int = 0
    first: list[float] = field(default_factory=list)  # some values of the first result
    changes: bool = False  # a later result was another
    varies: bool = False  # entries of dimension 0 of some result differ

    def gives_equals(self, rows: int) -> bool:
        """Return whether samples are equal: those of a result that holds as many, else the results of several calls."""
        if self.rows >= rows:
            return not self.varies and not self.changes
        return not self.changes and self.looks > 1


class Lineage:
    """The lines of one run."""

    def __init__(self) -> None:
        self._tensors: TensorTable[Line] = TensorTable()
        self._lines: dict[tuple[Site, str, torch.dtype, torch.Size], Line] = {}

    def listen(
        self, _func: Callable[..., Any], operation: Operation, call: Call, here: Callable[[], Site | None]
    ) -> None:
        """Note a torch call that gave data: tensors that do not require grad."""
        if operation.effect not in _KINDS:
            return
        made = [call.args[0]] if operation.writes and call.args else tensors_in(call.result)
        made = [tensor for tensor in made if isinstance(tensor, torch.Tensor) and not tensor.requires_grad]
        site = here() if made else None
        if site is None:
            return
        line = self._line(site, operation.name, made[0])
        if line is None:
            return
        taken: list[torch.Tensor] = []
        gather(call.args[:1] if operation.name in _INDEXING else (call.args, call.kwargs), taken)
        for tensor in taken[:_SOURCES]:
            source = self._tensors.get(tensor)
            if source is not None and source not in line.sources and len(line.sources) < _SOURCES:
                line.sources.append(source)
        for tensor in made:
            self._tensors.put(tensor, line)
        _look(line, made[0])

    def release(self, tensor: torch.Tensor) -> None:
        """Drop the weak reference to a tensor: `torch.utils.swap_tensors` refuses tensors that have one."""
        self._tensors.drop(tensor)

    def made_at(self, tensor: torch.Tensor) -> Place | None:
        """Return the line that computed a tensor's values; lines that only pass them on are passed over."""
        line = self._tensors.get(tensor)
        seen: list[Line] = []
        while line is not None and line not in seen and _passes_on(line) and len(line.sources) == 1:
            seen.append(line)
            line = line.sources[0]
        return None if line is None else _place(line)

    def made_equal_at(self, tensor: torch.Tensor) -> Place | None:
        """Return the line behind which all samples of a tensor are equal; None if it is not known."""
        line = self._tensors.get(tensor)
        rows = tensor.shape[0] if tensor.dim() else 1
        seen: list[Line] = []
        while line is not None:
            seen.append(line)
            equal = [source for source in line.sources if source.gives_equals(rows)]
            further = [source for source in equal if source not in seen]
            if len(equal) < len(line.sources) or not further:
                break
            line = further[0]
        return None if line is None else _place(line)

    def _line(self, site: Site, operation: str, made: torch.Tensor) -> Line | None:
        key = (site, operation, made.dtype, made.shape)  # a loader takes inputs and targets on one line
        line = self._lines.get(key)
        if line is None and len(self._lines) < MAX_LINES:
            line = self._lines[key] = Line(site, operation)
        return line


def _passes_on(line: Line) -> bool:
    return line.operation in _PASSING or line.operation in _PASSING_SHAPE


def _place(line: Line) -> Place:
    """Return the line's place; of values that come from outside of torch, the statement that gave them."""
    return place(line.site) if line.sources else (value_place(line.site) or place(line.site))


def _look(line: Line, result: torch.Tensor) -> None:
    line.rows = result.shape[0] if result.dim() else 1
    if line.looks >= MAX_LOOKS or not result.is_cpu or not is_supported(result) or not result.numel():
        return
    if result.layout is not torch.strided:
        return
    line.looks += 1
    values = _some(result)
    if line.looks == 1:
        line.first = values
    elif values != line.first:
        line.changes = True
    if line.rows > 1 and not line.varies:
        line.varies = not rows_are_equal(result)


def _some(tensor: torch.Tensor) -> list[float]:
    flat = tensor.detach().reshape(-1)
    values: list[float] = flat[:: max(1, len(flat) // _VALUES)].tolist()
    return values


def rows_are_equal(tensor: torch.Tensor, most: int = 32, columns: int = 1024) -> bool:
    """Return whether the entries of dimension 0 are all equal; of large tensors, a sample is compared."""
    head = tensor.detach()[:most]
    return _same(head[:2], columns) and _same(head, columns)  # two differ, as a rule


def _same(head: torch.Tensor, columns: int) -> bool:
    flat = head.reshape(len(head), -1)
    some = flat[:, :: max(1, flat.shape[1] // columns)]
    return bool((some == some[:1]).all())
