"""Listens to the torch calls of traced steps, and after each backward pass keeps what led to the loss.

Events: `outer_broadcast`, a flat vector was spread over a column vector on the way to the loss, and nothing treats the
result as a matrix (subject: the operation; shapes, parameters); `scrambled_reshape`, a reshape where a dimension was to
be moved (subject: the operation; shapes, parameters, the activation or loss behind it); `zero_factor`, a factor of the
loss that is all zero and does not learn; `unit_normalisation`, a normalisation along a dimension of size 1;
`softmax_as_logits`, what comes from a softmax is handed to a distribution as logits (subject: its class; parameters).
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from whygrad.model import LossCall, SoftmaxCall
from whygrad.probe.dataflow.arguments import Call, gather, tensors_in
from whygrad.probe.dataflow.operations import Effect, Operation
from whygrad.probe.dataflow.weak import TensorTable
from whygrad.probe.dataflow.window import is_leaf
from whygrad.probe.losses.callers import library_function, module_in_container
from whygrad.probe.losses.looks import (
    difference_look,
    leaves_kind_alone,
    loss_look,
    note_factor,
    note_normalisation,
    note_shapes,
    operation_name,
)
from whygrad.probe.losses.names import ACTIVATIONS, DIFFERENCES, FACTORS, LOSSES, PASSING, SOFTMAXES
from whygrad.probe.losses.reading import read
from whygrad.probe.losses.softness import follow, softmax_look
from whygrad.probe.losses.tables import Tables
from whygrad.probe.losses.values import Soft, Value
from whygrad.probe.source import Site

if TYPE_CHECKING:
    from whygrad.probe.session import Session

PART = "losses"  # its name where the guard reports failures
MAX_VALUES = 100_000  # of one step
_MUTE = frozenset(
    (Effect.VALUE, Effect.LOOK, Effect.GET_GRAD, Effect.SET_GRAD, Effect.SET_REQUIRES_GRAD, Effect.GRADIENT)
)


class LossWatch:
    """What is fed into the losses of one session."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._values: TensorTable[Value] = TensorTable()
        self._count = 0
        self._tables = Tables()
        session.tracer.listen(PART, self._hear)

    def facts(self) -> Iterator[LossCall | SoftmaxCall]:
        """Yield the facts about calls that a backward pass led back to."""
        return self._tables.facts()

    def after_backward(self, roots: Sequence[torch.Tensor]) -> None:
        """Keep what led to the loss that a backward pass ran on."""
        if self._session.tracer.active:
            self._session.guard.run(PART, self._read, roots)

    def end_step(self) -> None:
        """Forget the step's values, except those of tensors that are still alive."""
        if self._count:
            self._count = 0
            self._values.forget_dead()
            if not self._session.tracer.active:
                self._values = TensorTable()

    def release(self, tensor: torch.Tensor) -> None:
        """Drop the weak references to a tensor: `torch.utils.swap_tensors` refuses tensors that have one."""
        known = self._values.get(tensor)
        if known is not None:
            known.leaf = None
            self._values.drop(tensor)

    def _read(self, roots: Sequence[torch.Tensor]) -> None:
        values = [value for root in roots if (value := self._values.get(root)) is not None]
        if values:
            read(self._session, self._tables, values)

    # -- calls ------------------------------------------------------------------------------------------------------

    def _hear(
        self, _function: Callable[..., Any], operation: Operation, call: Call, here: Callable[[], Site | None]
    ) -> None:
        if not (operation.effect in _MUTE or operation.foreach or self._count > MAX_VALUES):
            self._note(operation, call, here)

    def _note(self, operation: Operation, call: Call, here: Callable[[], Site | None]) -> None:
        results = [call.args[0]] if operation.name == "setitem" else tensors_in(call.result)
        results = [tensor for tensor in results if not _is_parameter(tensor) and not tensor.is_nested]
        if not results:
            return
        taken: list[torch.Tensor] = []
        gather((call.args, call.kwargs), taken)
        written = operation.writes or (operation.inplace_option and bool(call.kwargs.get("inplace")))
        if not written:
            results = [tensor for tensor in results if not any(tensor is each for each in taken)]
        parents = tuple([self._value_of(tensor) for tensor in taken])
        name = operation_name(operation.name, call)
        passes = leaves_kind_alone(name, call, PASSING)
        for tensor in results:
            self._count += 1
            value = Value(name, here(), tuple(tensor.shape), parents, passes, tensor.requires_grad)
            if parents:
                self._look(value, call, taken)
            self._values.put(tensor, value)

    def _value_of(self, tensor: torch.Tensor) -> Value:
        known = self._values.get(tensor)
        if known is None:
            shape = () if tensor.is_nested else tuple(tensor.shape)
            leaf = weakref.ref(tensor) if _is_parameter(tensor) else None
            known = Value("", None, shape, learns=tensor.requires_grad, leaf=leaf)
            self._values.put(tensor, known)
        return known

    def _look(self, value: Value, call: Call, tensors: Sequence[torch.Tensor]) -> None:
        name, guard = value.operation, self._session.guard
        note_shapes(value)
        note_normalisation(value, call)
        if name in ACTIVATIONS:
            self._look_at_activation(value, call)
        elif name == "logsumexp":
            value.inside = library_function(self._session.user)
        elif name in LOSSES:
            value.loss = guard.run(PART, loss_look, value, call, tensors)
        elif name in DIFFERENCES:
            value.loss = guard.run(PART, difference_look, value, tensors)
        elif name in FACTORS:
            guard.run(PART, note_factor, value, call, tensors)
        if any(parent.soft is not None for parent in value.parents):
            guard.run(PART, follow, value, call, tensors)
        if value.softmax is not None:
            value.soft = Soft(value.softmax, tuple(range(len(value.shape))))

    def _look_at_activation(self, value: Value, call: Call) -> None:
        module = module_in_container(self._session.user)
        value.made_by = None if module is None else self._session.registry.made_at(module)
        if value.operation in SOFTMAXES:
            value.softmax = softmax_look(value, call, value.parents[0])


def _is_parameter(tensor: torch.Tensor) -> bool:
    return isinstance(tensor, nn.Parameter) or (tensor.requires_grad and is_leaf(tensor))
