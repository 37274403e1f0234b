"""Why no gradient is computed for a tensor: it does not require grad, or only claims to."""

from __future__ import annotations

import torch
from torch._C._autograd import CreationMeta, _get_creation_meta

from whygrad.interactive.kinds import CUTS, Kind, Reason, Told
from whygrad.interactive.sharing import sharer_with_grad


def constant(tensor: torch.Tensor) -> Told:
    """Return why a tensor does not require grad, as far as it shows."""
    if not (tensor.is_floating_point() or tensor.is_complex()):
        return _integer_type(tensor)
    if tensor.is_inference():
        return Told(
            Reason.INFERENCE_MODE,
            "`.grad` stays None because it was made under `torch.inference_mode()`, which shuts it out of autograd.",
            "Make it outside of `torch.inference_mode()`, or `clone()` it there and use the clone.",
        )
    if isinstance(tensor, torch.nn.Parameter):
        return Told(
            Reason.NOT_REQUIRED,
            "`.grad` stays None because the parameter is frozen: its `requires_grad` is False.",
            "Call `requires_grad_()` on it before forward, if it is meant to learn.",
        )
    return _detached(tensor) or _unmarked()


def _integer_type(tensor: torch.Tensor) -> Told:
    dtype = str(tensor.dtype).removeprefix("torch.")
    return Told(
        Reason.INTEGER_TYPE,
        f"`.grad` stays None because {dtype} tensors cannot require grad, only floating-point and complex ones can.",
        "Convert it to a floating-point type before the computation; indices and labels need no gradient.",
    )


def cut_view(tensor: torch.Tensor) -> Told:
    """Return why a view only claims to require grad (see `is_cut_view`): torch notes the mode it was made in."""
    if _get_creation_meta(tensor) in (CreationMeta.NO_GRAD_MODE, CreationMeta.INFERENCE_MODE):
        return Told(
            Reason.NO_GRAD,
            "`.grad` stays None because it is a view made while grad mode was off: gradients end at it.",
            "Make the view outside of `torch.no_grad()` or `torch.inference_mode()`.",
        )
    return Told(
        Reason.NOT_REQUIRED,
        "`.grad` stays None because it is a view made before the tensor it shows required grad: gradients end at it.",
        "Call `requires_grad_()` first, then make the view.",
    )


def _detached(tensor: torch.Tensor) -> Told | None:
    source = sharer_with_grad(tensor)
    if source is None:
        return None
    kind = "a leaf" if Kind.of(source) is Kind.LEAF else "an intermediate"
    return Told(
        Reason.DETACHED,
        f"`.grad` stays None because it only shares the memory of {kind} of shape {list(source.shape)}, as `detach()` "
        "and `.data` do: gradients end there.",
        "Use that tensor itself where gradients are to flow.",
    )


def _unmarked() -> Told:
    if not torch.is_grad_enabled():
        return Told(
            Reason.NO_GRAD,
            "`.grad` stays None because grad mode is off here, so that no operation gives a tensor that requires grad.",
            "Compute it outside of `torch.no_grad()`, if gradients are to flow through it.",
        )
    return Told(
        Reason.NOT_REQUIRED,
        "`.grad` stays None; whether the tensor was made so, computed from constants or under `no_grad`, or detached "
        "from one that is gone, it does not show.",
        f"Call `requires_grad_()` on it before it is used, if it is an input; if it was computed, look for {CUTS}.",
    )
