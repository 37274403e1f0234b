"""Saturation: how much of what enters or leaves a squashing function lies where it is flat.

A sigmoid, tanh or softmax is known by its module, by the operation that made a module's output, or by the traced call
that took a module's output. Flat is a slope below a hundredth of the steepest one.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch
from torch import nn

from whygrad.model import Activation
from whygrad.probe.dataflow.arguments import Call
from whygrad.probe.dataflow.operations import Operation
from whygrad.probe.dataflow.weak import TensorTable
from whygrad.probe.outputs import grad_fn_of
from whygrad.probe.source import Site, place_or_none
from whygrad.stats.kernel import sample_view

MAX_LOOKS = 192  # kept of one activation
_THIN = 3  # then each third is kept: odd, for optimizers often take turns
_VALUES = 4096  # of one look
_LOOKS_A_STEP = 4
_FLAT = 0.01  # of the steepest slope
_MODULES = {"Sigmoid": "sigmoid", "Tanh": "tanh", "Softmax": "softmax"}
_NODES = {"SigmoidBackward0": "sigmoid", "TanhBackward0": "tanh", "SoftmaxBackward0": "softmax"}
_FRAMES = 12
_TORCH_MODULE = "torch/nn/modules/activation.py"


class _Look(NamedTuple):
    """What was seen of one activation in one step."""

    step: int
    flat: float  # share of the values
    slope: float  # mean, against the steepest


@dataclass(slots=True)
class _Tracked:
    """One activation, look by look."""

    output: int
    function: str
    site: Site | None = None
    of_input: bool = False  # what is looked at is what the function takes, not what it gives
    looks: list[_Look] = field(default_factory=list)  # of every `stride`-th step
    stride: int = 1
    seen: int = 0  # steps
    step: int = -1
    pending: list[tuple[float, float]] = field(default_factory=list)  # of this step

    def look(self, step: int, tensor: torch.Tensor) -> None:
        """Measure one call, if the step's turn has come."""
        if step != self.step:
            self.looks = self.all_looks()
            if len(self.looks) > MAX_LOOKS:
                self.looks, self.stride = self.looks[::_THIN], _THIN * self.stride
            self.step, self.seen, self.pending = step, self.seen + 1, []
        if len(self.pending) < _LOOKS_A_STEP and (self.seen - 1) % self.stride == 0:
            slopes = _slopes(self.function, tensor, of_input=self.of_input)
            self.pending.append((float((slopes < _FLAT).double().mean()), float(slopes.mean())))

    def all_looks(self) -> list[_Look]:
        """Return the looks, that at the present step included."""
        if not self.pending:
            return self.looks
        flat, slopes = (sum(column) / len(self.pending) for column in zip(*self.pending, strict=True))
        return [*self.looks, _Look(self.step, flat, slopes)]


class ActivationRecorder:
    """The squashing functions of one run."""

    def __init__(
        self,
        step: Callable[[], int],
        made_at: Callable[[nn.Module], Site | None],
        on_sequence: Callable[[int, int], None],
    ) -> None:
        self._step = step
        self._made_at = made_at
        self._on_sequence = on_sequence
        self._found: dict[int, _Tracked] = {}  # by output
        self._outputs: TensorTable[int] = TensorTable()

    def note(self, output: int, module: nn.Module, tensor: torch.Tensor) -> None:
        """Look at what a module returned."""
        if not tensor.is_cpu or not tensor.numel() or tensor.layout is not torch.strided:
            return
        self._outputs.put(tensor, output)
        entry = self._found.get(output)
        if entry is None:
            function = _MODULES.get(type(module).__name__) or _function_of(tensor)
            if function is None:
                return
            entry = self._found[output] = _Tracked(output, function, self._made_at(module))
        entry.look(self._step(), tensor.detach())

    def enter(self, module: nn.Module, args: tuple[Any, ...], _kwargs: Mapping[str, Any]) -> None:
        """Note what enters a recurrent layer."""
        if isinstance(module, nn.RNNBase) and args and isinstance(args[0], torch.Tensor) and args[0].dim() == 3:
            output = self._outputs.get(args[0])
            if output is not None:
                self._on_sequence(output, 1 if module.batch_first else 0)

    def listen(
        self, _func: Callable[..., Any], operation: Operation, call: Call, here: Callable[[], Site | None]
    ) -> None:
        """Note a traced call of a squashing function on what a module returned."""
        if operation.name not in ("sigmoid", "tanh") or not call.args or not isinstance(call.args[0], torch.Tensor):
            return
        output = self._outputs.get(call.args[0])
        if output is not None and output not in self._found and not _is_called_by_a_module():
            entry = self._found[output] = _Tracked(output, operation.name, here(), of_input=True)
            entry.look(self._step(), call.args[0].detach())

    def release(self, tensor: torch.Tensor) -> None:
        """Drop the weak reference to a tensor: `torch.utils.swap_tensors` refuses tensors that have one."""
        self._outputs.drop(tensor)

    def facts(self) -> Iterator[Activation]:
        """Yield what was seen of each function."""
        for number, entry in enumerate(self._found.values()):
            looks = entry.all_looks()
            yield Activation(
                id=number,
                output=entry.output,
                function=entry.function,
                place=place_or_none(entry.site),
                steps=tuple(look.step for look in looks),
                flat=tuple(look.flat for look in looks),
                slopes=tuple(look.slope for look in looks),
            )


def _function_of(tensor: torch.Tensor) -> str | None:
    node = grad_fn_of(tensor)
    return None if node is None else _NODES.get(node.name())


def _slopes(function: str, tensor: torch.Tensor, *, of_input: bool) -> torch.Tensor:
    """Return the slopes of a function at some of its values, against the steepest one."""
    if function == "softmax":
        rows = tensor.reshape(-1, tensor.shape[-1])[:_VALUES].double() if tensor.dim() else tensor.view(1, 1).double()
        largest = rows.amax(-1)
        return 4 * largest * (1 - largest)
    values = sample_view(tensor, _VALUES).double()
    if of_input:
        values = values.sigmoid() if function == "sigmoid" else values.tanh()
    return 4 * values * (1 - values) if function == "sigmoid" else 1 - values * values


def _is_called_by_a_module() -> bool:
    """Return whether a module of torch's calls the function: then the module's own output is looked at."""
    frame = sys._getframe(2)
    for _ in range(_FRAMES):
        if frame.f_back is None:
            return False
        frame = frame.f_back
        if frame.f_code.co_filename.endswith(_TORCH_MODULE):
            return True
    return False
