"""Sizes over steps and over depth: what the rules about the numbers of gradients share.

The nearer a layer is to the input, the earlier it is called, and the later backward comes to it. Rules walk the
parameters and outputs of a model in forward order; tensors of different models are never compared.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence

from whygrad.evidence import Evidence
from whygrad.model import Module, Output, Parameter, Place, Role, Statistics, Step
from whygrad.rules._once import once
from whygrad.rules._select import by_line, is_stepped

Samples = Mapping[int, Mapping[int, Statistics]]  # id of the parameter or output -> step -> its statistics

_TYPICAL_STEPS = 32


def samples(evidence: Evidence, role: Role, *, before: int | None = None) -> Samples:
    """Return the statistics of a sample of the recorded steps, tensor by tensor.

    Args:
        evidence: What to read from.
        role: Which tensors.
        before: Leave out this step and all later ones.
    """
    sampled = evidence.sample(role, _TYPICAL_STEPS)
    return samples_at(evidence, role, tuple(step for step in sampled if before is None or step < before))


@once
def samples_at(evidence: Evidence, role: Role, steps: tuple[int, ...]) -> Samples:
    """Return the statistics of the given steps, tensor by tensor."""
    found: dict[int, dict[int, Statistics]] = {}
    for step in steps:
        for number, measured in evidence.matrices.read(step, role).items():
            found.setdefault(number, {})[step] = measured
    return found


def is_taught(evidence: Evidence, parameter: Parameter) -> bool:
    """Return whether gradients came to a parameter that something is to move by them."""
    moved = is_stepped(evidence, parameter) or not evidence.optimizers
    return moved and parameter.requires_grad and not parameter.stale and parameter.gradient_steps > 0


@once
def models(evidence: Evidence) -> tuple[tuple[Parameter, ...], ...]:
    """Return the parameters that are taught, in forward order, model by model.

    Two models may have had one variable after the other, and parts of a model may be trained apart: what different
    optimizers hold is not compared.
    """
    found: dict[tuple[str, tuple[int, ...]], list[Parameter]] = {}
    for parameter in evidence.parameters_in_order:
        if is_taught(evidence, parameter):
            found.setdefault((parameter.root, parameter.optimizers), []).append(parameter)
    return tuple(tuple(members) for members in found.values())


@once
def outputs_of(evidence: Evidence, root: str) -> tuple[Output, ...]:
    """Return the outputs of a model that a gradient came to, in forward order."""
    known = evidence.module_by_id
    outputs = (o for o in evidence.outputs if o.gradient_calls and o.module in known)
    return tuple(sorted((o for o in outputs if known[o.module].root == root), key=lambda output: output.order))


def outputs_by(evidence: Evidence, module: Module | None) -> tuple[Output, ...]:
    """Return the outputs of one module that a gradient came to."""
    return () if module is None else _outputs_by_module(evidence).get(module.id, ())


@once
def _outputs_by_module(evidence: Evidence) -> Mapping[int, tuple[Output, ...]]:
    found: dict[int, list[Output]] = {}
    for output in evidence.outputs:
        if output.gradient_calls:
            found.setdefault(output.module, []).append(output)
    return {module: tuple(outputs) for module, outputs in found.items()}


def is_layer(parameter: Parameter) -> bool:
    """Return whether a parameter is the weight of a layer: a matrix or a kernel, not a table that is looked up."""
    return len(parameter.shape) >= 2 and "Embedding" not in parameter.module_type and parameter.order is not None


def median(values: Iterable[float]) -> float:
    """Return the median of the finite values; NaN if there is none."""
    finite = [value for value in values if math.isfinite(value)]
    return statistics.median(finite) if finite else math.nan


@once
def broken_at(evidence: Evidence) -> int | None:
    """Return the first step at which a parameter, its gradient or the loss was not finite, as far as was recorded.

    A mask of -Inf may be kept as a parameter that does not require grad: it is not broken.
    """
    trained = {parameter.id for parameter in evidence.parameters if parameter.requires_grad}
    of_parameters = (t for t in evidence.totals if t.role in (Role.GRADIENT, Role.WEIGHT, Role.UPDATE))
    seen = (total.first_nonfinite_step for total in of_parameters if total.id in trained)
    losses = (step.id for step in evidence.steps if has_broken_loss(step))
    return min([*(step for step in seen if step is not None), *losses], default=None)


def has_broken_loss(step: Step) -> bool:
    """Return whether the loss of a step was NaN or Inf."""
    return step.loss is not None and not math.isfinite(step.loss)


def line_of(evidence: Evidence, parameters: Sequence[Parameter]) -> Place | None:
    """Return the line to look at for layers that lie in sequence: the last one that most of them are used on.

    Where one line calls the whole model, it says nothing about any layer: then it is where the layers are made.
    """
    model = [p for p in evidence.parameters if p.root == parameters[0].root and p.used_at is not None]
    whole = len({_line(p.used_at) for p in model}) == 1 and len({p.module for p in model}) > 1
    groups = by_line(parameters, lambda p: p.made_at if (whole and p.module) or p.used_at is None else p.used_at)
    places = [(len(members), position, place) for position, (place, members) in enumerate(groups) if place is not None]
    return max(places, key=lambda found: found[:2])[2] if places else None


def _line(place: Place | None) -> tuple[str, int] | None:
    return None if place is None else (place.file, place.line)


def backward_line(evidence: Evidence) -> Place | None:
    """Return the line that called backward, if there is only one."""
    places = [event.place for event in evidence.events_of("backward") if event.place is not None]
    return places[0] if len(places) == 1 else None
