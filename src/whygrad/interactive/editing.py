"""A gradient changed on its way: what an `edit` function may give back."""

from __future__ import annotations

from collections.abc import Callable

import torch

from whygrad.errors import WhygradError

Edit = Callable[[torch.Tensor], torch.Tensor]
"""From a gradient to the gradient that takes its place: same shape, dtype and device."""


def require_function(name: str, edit: object) -> None:
    """Raise a WhygradError if the edit of tap `name` is neither a function nor None."""
    if edit is not None and not callable(edit):
        msg = f"the edit of tap `{name}` is a function of the gradient, not {type(edit).__name__}"
        raise WhygradError(msg)


def edited(name: str, edit: Edit, gradient: torch.Tensor) -> torch.Tensor:
    """Return what `edit` makes of a copy of `gradient`, so that it may work in place: others read the original.

    Raises:
        WhygradError: The result is no tensor, or of another shape, dtype or device. It names the tap `name`.
    """
    result: object = edit(gradient.clone())
    if not isinstance(result, torch.Tensor):
        msg = f"the edit of tap `{name}` returned {type(result).__name__}, expected a tensor of {_form(gradient)}"
        raise WhygradError(msg)
    if (result.shape, result.dtype, result.device) != (gradient.shape, gradient.dtype, gradient.device):
        msg = f"the edit of tap `{name}` returned a tensor of {_form(result)}, expected {_form(gradient)}"
        raise WhygradError(msg)
    return result


def _form(tensor: torch.Tensor) -> str:
    """Return for example `shape [4, 8], dtype float32 on cpu`."""
    return f"shape {list(tensor.shape)}, dtype {str(tensor.dtype).removeprefix('torch.')} on {tensor.device}"
