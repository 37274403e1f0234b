"""Units that start equal and stay equal: rows or columns of a parameter with the same weights and the same gradient."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import torch

from whygrad.model import Symmetry
from whygrad.probe.parameters import Tracked
from whygrad.stats.kernel import is_supported

_UNITS = 32  # compared along one dimension
_VALUES = 128  # of each
_DIMENSIONS = 3
_EQUAL = 1e-3  # of the size; sums in another order differ by 1e-6
_TRIES = 8  # at a gradient that is zero
_FIRST_LOOKS = 4  # later ones come when twice as many steps are done


@dataclass(slots=True)
class _Twins:
    """The units along one dimension that were equal at every look so far."""

    dimension: int
    units: int
    same: torch.Tensor  # bool [units, units]
    looks: int = 0
    first_step: int = 0
    last_step: int = 0
    difference: float = 0.0
    gradient_difference: float = 0.0


@dataclass(slots=True)
class _State:
    """What is known of one parameter."""

    seen: int = 0
    looked: bool = False
    twins: list[_Twins] = field(default_factory=list)


class SymmetryTable:
    """Which parameters have units that are all equal to another one; one look tells it of nearly all others."""

    def __init__(self) -> None:
        self._states: dict[int, _State] = {}

    def look(self, step: int, entries: Iterable[Tracked]) -> None:
        """Compare the units of parameters that are about to be moved by their gradients."""
        for entry in entries:
            tensor = entry.ref()
            state = self._states.get(entry.id)
            if state is None:
                state = self._states[entry.id] = _State()
            if tensor is None or not self._wants(state, step, tensor):
                continue
            gradient = tensor.grad
            if gradient is not None and is_supported(gradient) and gradient.layout is torch.strided:
                self._compare(state, step, tensor.detach(), gradient)

    def facts(self) -> Iterator[Symmetry]:
        """Yield the dimensions along which every unit has had a twin at each of at least two looks."""
        for number, state in self._states.items():
            for twins in state.twins:
                if twins.looks > 1:
                    yield Symmetry(
                        id=number,
                        dimension=twins.dimension,
                        units=twins.units,
                        looks=twins.looks,
                        first_step=twins.first_step,
                        last_step=twins.last_step,
                        difference=twins.difference,
                        gradient_difference=twins.gradient_difference,
                    )

    @staticmethod
    def _wants(state: _State, step: int, tensor: torch.Tensor) -> bool:
        state.seen += 1
        if tensor.dim() < 2 or not tensor.is_cpu or not is_supported(tensor) or tensor.layout is not torch.strided:
            return False
        if not state.looked:
            return state.seen <= _TRIES
        return bool(state.twins) and (state.seen <= _FIRST_LOOKS or step + 1 >= 2 * (state.twins[0].last_step + 1))

    @staticmethod
    def _compare(state: _State, step: int, weight: torch.Tensor, gradient: torch.Tensor) -> None:
        if not state.looked:
            if not gradient.any():
                return
            state.looked = True
            dimensions = [d for d in range(min(weight.dim(), _DIMENSIONS)) if weight.shape[d] > 1]
            state.twins = [_Twins(d, 0, torch.empty(0), first_step=step) for d in dimensions]
        state.twins = [twins for twins in state.twins if _are_still_equal(twins, step, weight, gradient)]


def _are_still_equal(twins: _Twins, step: int, weight: torch.Tensor, gradient: torch.Tensor) -> bool:
    values, slopes = (_units(tensor, twins.dimension) for tensor in (weight, gradient))
    far, steep = _distances(values), _distances(slopes)
    size, slope = (values.square().sum(1).mean().sqrt(), slopes.square().sum(1).sqrt())
    same = (far <= _EQUAL * size) & (steep <= _EQUAL * slope) & (slope > 0)
    if twins.looks:
        same &= twins.same
    same.fill_diagonal_(fill_value=False)
    if not bool(same.any(1).all()):
        return False
    twins.same, twins.units, twins.last_step = same, len(same), step
    twins.looks += 1
    if size > 0:
        twins.difference = max(twins.difference, float(far[same].max() / size))
    twins.gradient_difference = max(twins.gradient_difference, float((steep / slope)[same].max()))
    return True


def _units(tensor: torch.Tensor, dimension: int) -> torch.Tensor:
    """Return some units along a dimension, float64 [units, values], evenly spread."""
    count = tensor.shape[dimension]
    index = torch.arange(min(count, _UNITS), device="cpu") * count // min(count, _UNITS)
    units = tensor.index_select(dimension, index).movedim(dimension, 0).reshape(len(index), -1)
    return units[:, :: max(1, units.shape[1] // _VALUES)].double()


def _distances(units: torch.Tensor) -> torch.Tensor:
    products = units @ units.T
    squares = products.diagonal()
    return (squares[:, None] + squares[None, :] - 2 * products).clamp_min(0).sqrt()
