"""The words in which a tensor is explained, and what can be read off it without a warning."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

import torch

from whygrad.errors import WhygradError

CUTS = "`detach()`, `.data`, `.item()`, a NumPy round trip or `no_grad`"  # where to look for a lost gradient


class Kind(StrEnum):
    """The three kinds of tensors that autograd knows."""

    LEAF = "leaf"  # requires grad, and no operation made it
    INTERMEDIATE = "intermediate"  # the output of an operation on something that requires grad
    CONSTANT = "constant"  # does not require grad

    @staticmethod
    def of(tensor: torch.Tensor) -> Kind:
        """Return the kind of a tensor."""
        if not tensor.requires_grad:
            return Kind.CONSTANT
        return Kind.LEAF if tensor.is_leaf else Kind.INTERMEDIATE


class Reason(StrEnum):
    """Why `.grad` is there, or why it is None."""

    HAS_GRAD = "has-grad"
    NOT_REQUIRED = "not-required"
    INTEGER_TYPE = "integer-type"
    DETACHED = "detached"
    NO_GRAD = "no-grad"
    INFERENCE_MODE = "inference-mode"
    NOT_RETAINED = "not-retained"
    RETAINED_LATE = "retained-late"
    MADE_NON_LEAF = "made-non-leaf"
    BACKWARD_NOT_RUN = "backward-not-run"
    NOT_REACHED = "not-reached"
    NO_GRADIENT_ARRIVED = "no-gradient-arrived"
    CLEARED = "cleared"


class Told(NamedTuple):
    """A reason in words."""

    reason: Reason
    why: str
    fix: str


def require_tensor(function: str, given: object) -> None:
    """Raise a WhygradError if what `function` was given is no tensor."""
    if not isinstance(given, torch.Tensor):
        msg = f"{function}() takes a tensor, not {type(given).__name__}"
        raise WhygradError(msg)


def has_grad(tensor: torch.Tensor) -> bool:
    """Return whether `.grad` is there, without a read that torch warns of: it fills none that is not retained."""
    return (tensor.is_leaf or tensor.retains_grad) and tensor.grad is not None


def is_cut_view(tensor: torch.Tensor) -> bool:
    """Return whether a tensor only claims to require grad: a view that torch did not connect with what it shows.

    Such a view, made while grad mode was off or before its base required grad, is a leaf by its flags. No gradient
    arrives in it, nor does one pass through it.
    """
    if tensor._base is None or not (tensor.requires_grad and tensor.is_leaf):
        return False
    with torch.inference_mode(mode=False), torch.enable_grad():
        node = tensor.view_as(tensor).grad_fn
    return node is not None and node.next_functions[0][0] is None
