"""What is fed: the data that enters models, the layers that learn from it, and regression losses.

Data is what holds no gradient. It is looked at when a module is called, in recorded steps, and where a target is
compared with what a model returned, in traced ones. Only tensors in the host's memory are read.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn

from whygrad.model import Feed, Place, Statistics
from whygrad.probe.dataflow.arguments import Call
from whygrad.probe.dataflow.operations import Operation
from whygrad.probe.dataflow.weak import TensorTable
from whygrad.probe.lineage import Lineage, rows_are_equal
from whygrad.probe.outputs import OutputRecorder, tensors_in
from whygrad.probe.source import Site, UserCode, place_or_none
from whygrad.stats.kernel import is_supported, sample_view, tensor_statistics

MAX_FEEDS = 2000
_LOOKS_A_STEP = 2  # a recurrent layer is called at every time step
_STEPS = 8  # looked at one after the other; later when twice as many are done
_SAMPLES = 8  # fewer say little about a column's spread
_MOST_SAMPLES = 512
_MOST_VALUES = 1_000_000
_WEIGHING = ("mul", "div", "truediv", "multiply", "divide", "rmul")
_COMPARING = ("sub", "rsub", "mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss")

_Key = tuple[str, object, str]  # kind, module or line, argument


@dataclass(slots=True)
class Tracked:
    """One argument, and what was seen of it."""

    id: int
    kind: str
    module: int | None
    path: str  # of the argument; of a target: the operation
    shape: tuple[int, ...]
    dtype: str
    looks: int = 0
    constant_looks: int = 0
    expanded: bool = False
    statistics: Statistics = field(default_factory=Statistics)
    low: float = math.inf
    high: float = -math.inf
    spread: tuple[float, float] | None = None
    weighed: bool = False  # the difference is multiplied or divided by something of more than one element
    taken_at: Site | None = None
    made_at: Place | None = None
    step: int = -1
    in_step: int = 0
    steps: int = 0


class FeedRecorder:
    """The data of one run."""

    def __init__(self, user: UserCode, outputs: OutputRecorder, lineage: Lineage, step: Callable[[], int]) -> None:
        self._user = user
        self._outputs = outputs
        self._lineage = lineage
        self._step = step
        self._feeds: dict[_Key, Tracked] = {}
        self._compared: TensorTable[Tracked] = TensorTable()  # differences -> target

    # -- what is seen -----------------------------------------------------------------------------------------------

    def enter(self, module: nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        """Look at what a module is called with."""
        if torch._C._current_graph_task_id() != -1:
            return  # checkpointing runs a forward again
        number = self._outputs.number_of(module)
        if number is None:
            return
        if self._outputs.depth == 0:
            for path, tensor in _arguments(args, kwargs):
                self._note("model", number, path, tensor)
        if args and isinstance(args[0], torch.Tensor) and _learns(module):
            self._note("layer", number, "[0]", args[0])

    def listen(
        self, _func: Callable[..., Any], operation: Operation, call: Call, here: Callable[[], Site | None]
    ) -> None:
        """Look at a target: what a traced call compares with something that depends on a parameter."""
        one, other = (*call.args, None, None)[:2]
        if not isinstance(one, torch.Tensor) or not isinstance(other, torch.Tensor):
            return
        if operation.name in _WEIGHING:
            weighed = self._compared.get(one) or self._compared.get(other)
            if (
                weighed is not None
                and min(one.numel(), other.numel()) > 1
                and not one.requires_grad & other.requires_grad
            ):
                weighed.weighed = True
        elif operation.name in _COMPARING and one.shape == other.shape and one.requires_grad != other.requires_grad:
            feed = self._note("target", here(), operation.name, other if one.requires_grad else one)
            if feed is not None and isinstance(call.result, torch.Tensor):
                self._compared.put(call.result, feed)

    def release(self, tensor: torch.Tensor) -> None:
        """Drop the weak reference to a tensor: `torch.utils.swap_tensors` refuses tensors that have one."""
        self._compared.drop(tensor)

    def _note(self, kind: str, owner: object, path: str, tensor: torch.Tensor) -> Tracked | None:
        if tensor.requires_grad or not tensor.dim() or not tensor.is_cpu or not tensor.numel():
            return None
        if not is_supported(tensor) or tensor.layout is not torch.strided or isinstance(tensor, nn.Parameter):
            return None
        feed = self._feeds.get((kind, owner, path))
        if feed is None:
            if len(self._feeds) >= MAX_FEEDS:
                return None
            module = owner if isinstance(owner, int) else None
            dtype = str(tensor.dtype).removeprefix("torch.")
            feed = Tracked(len(self._feeds), kind, module, path, tuple(tensor.shape), dtype)
            self._feeds[kind, owner, path] = feed
            feed.taken_at = owner if isinstance(owner, Site) else self._user.capture(1)
        if self._wants(feed):
            self._look(feed, tensor)
        return feed

    def _wants(self, feed: Tracked) -> bool:
        step = self._step()
        if step != feed.step:
            if feed.steps >= _STEPS and step < 2 * feed.step:
                return False
            feed.step, feed.in_step, feed.steps = step, 0, feed.steps + 1
        feed.in_step += 1
        return feed.in_step <= _LOOKS_A_STEP

    def _look(self, feed: Tracked, tensor: torch.Tensor) -> None:
        measured = Statistics(*tensor_statistics(sample_view(tensor)).tolist())
        low, high = torch.aminmax(sample_view(tensor))
        feed.statistics += measured
        feed.low, feed.high = min(feed.low, float(low)), max(feed.high, float(high))
        rows = tensor.shape[0]
        constant = rows > 1 and rows_are_equal(tensor)
        if rows > 1:
            feed.looks += 1
            feed.constant_looks += constant
            feed.expanded |= tensor.stride(0) == 0
        if feed.spread is None and rows >= _SAMPLES and tensor.is_floating_point():
            feed.spread = _spread(tensor)
        made = self._lineage.made_equal_at(tensor) if constant else self._lineage.made_at(tensor)
        feed.made_at = made or feed.made_at

    # -- what it comes to -------------------------------------------------------------------------------------------

    def facts(self, names: Mapping[int, str]) -> Iterator[Feed]:
        """Yield what was fed.

        Args:
            names: Id of a module -> its qualified name.
        """
        for feed in self._feeds.values():
            smallest, largest = feed.spread if feed.spread and not feed.weighed else (math.nan, math.nan)
            yield Feed(
                id=feed.id,
                name=feed.path if feed.module is None else names.get(feed.module, "") + feed.path,
                kind=feed.kind,
                module=feed.module,
                shape=feed.shape,
                dtype=feed.dtype,
                looks=feed.looks,
                constant_looks=feed.constant_looks,
                expanded=feed.expanded,
                mean=feed.statistics.mean,
                std=feed.statistics.std,
                low=feed.low,
                high=feed.high,
                smallest_std=smallest,
                largest_std=largest,
                taken_at=place_or_none(feed.taken_at),
                made_at=feed.made_at,
            )


def _arguments(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Iterator[tuple[str, torch.Tensor]]:
    yield from tensors_in(args)
    yield from tensors_in(dict(kwargs))


def _learns(module: nn.Module) -> bool:
    """Return whether a module holds parameters of its own that are to learn."""
    return any(p is not None and p.requires_grad for p in module.__dict__.get("_parameters", {}).values())


def _spread(tensor: torch.Tensor) -> tuple[float, float] | None:
    """Return the smallest and the largest standard deviation of a column that varies; no column of 0 and 1 only."""
    head = tensor[:_MOST_SAMPLES]
    if tensor.dim() < 2 or tensor.shape[1] < 2 or head.numel() > _MOST_VALUES:
        return None
    columns = head.double().transpose(0, 1).reshape(tensor.shape[1], -1)
    free = ((columns != 0) & (columns != 1)).any(1)
    spreads = columns.std(1)[free]
    spreads = spreads[spreads > 0]
    return (float(spreads.min()), float(spreads.max())) if len(spreads) > 1 else None
