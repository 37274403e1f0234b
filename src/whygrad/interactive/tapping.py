"""`tap(tensor, name)`: record, keep or change the gradient that passes through one tensor.

tap `hidden`: 1 backward pass, the last:
  gradient  mean 1.2e-04  std 3.1e-03  mean |g| 2.2e-03  L2 9.6e-02  max |g| 1.4e-02  zeros 12.5%  NaN/Inf 0
"""

from __future__ import annotations

from collections import deque
from types import TracebackType
from typing import Any, Self

import torch
from torch.utils.hooks import RemovableHandle, unserializable_hook

from whygrad.errors import WhygradError
from whygrad.interactive.editing import Edit, edited, require_function
from whygrad.interactive.kinds import Kind, is_cut_view, require_tensor
from whygrad.interactive.notebook import MimeBundle, mime_bundle
from whygrad.interactive.reasons import told
from whygrad.model import Statistics
from whygrad.probe.guard import Guard
from whygrad.stats.kernel import refusal, tensor_statistics

_register: Any = torch.Tensor.register_hook  # torch leaves both untyped
_mark_unsaved: Any = unserializable_hook

HISTORY = 1000  # backward passes whose statistics a tap remembers, the last ones; a row takes some 0.5 kB


class Tap:
    """A tap on one tensor: the statistics of each gradient that has passed, and the switch to take it off.

    It holds numbers only, neither the tensor nor a gradient.
    """

    def __init__(self, name: str, edit: Edit | None) -> None:
        self.name = name
        self.passes = 0  # backward passes that brought a gradient
        self._edit = edit
        self._came: deque[torch.Tensor] = deque(maxlen=HISTORY)  # rows of statistics, on the gradient's device
        self._went: deque[torch.Tensor] = deque(maxlen=HISTORY)
        self._unmeasured = ""
        self._guard = Guard()
        self._handle: RemovableHandle | None = None

    @property
    def history(self) -> list[Statistics]:
        """Return the statistics of the gradient as it came, by backward pass, at most the last 1000."""
        return [_read(row) for row in self._came]

    @property
    def history_after(self) -> list[Statistics]:
        """Return the statistics of the gradient after `edit`, by backward pass, at most the last 1000."""
        return [_read(row) for row in (self._went if self._edit is not None else self._came)]

    @property
    def statistics(self) -> Statistics | None:
        """Return the statistics of the latest gradient as it came; None before the first."""
        return _read(self._came[-1]) if self._came else None

    @property
    def before(self) -> Statistics | None:
        """Return the statistics of the latest gradient before `edit`: another name for `statistics`."""
        return self.statistics

    @property
    def after(self) -> Statistics | None:
        """Return the statistics of the latest gradient after `edit`; without an `edit`, it went on as it came."""
        rows = self._went if self._edit is not None else self._came
        return _read(rows[-1]) if rows else None

    def remove(self) -> None:
        """Take the tap off; what it recorded stays. Doing so twice is fine, and so is doing so from within `edit`.

        A gradient that `keep` asked for is kept on: torch cannot take `retain_grad()` back.
        """
        if self._handle is not None:
            self._handle.remove()
            self._handle = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.remove()

    def __str__(self) -> str:
        if not self.passes:
            return f"tap `{self.name}`: no gradient has passed yet"
        lines = [f"tap `{self.name}`: {self.passes} backward pass{'es' * (self.passes > 1)}, the last:"]
        if self._edit is None:
            lines.append(_line("gradient", self.statistics))
        else:
            lines += [_line("before", self.before), _line("after ", self.after)]
        lines += [note for note in (self._unmeasured, *self._guard.failures.values()) if note]
        return "\n  ".join(lines)

    def __repr__(self) -> str:
        return str(self)

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> MimeBundle:
        del include, exclude  # a notebook picks from the two on its own
        return mime_bundle(str(self))

    def _attach(self, tensor: torch.Tensor) -> None:
        def hook(gradient: torch.Tensor | None) -> torch.Tensor | None:
            return self._pass(gradient)

        # A view whose memory was written through another one has its history renewed on this read. Left to
        # `register_hook`, that drops the hooks it is just adding and ends the process (pytorch/pytorch#196459).
        _ = tensor.grad_fn
        # Saving a tapped parameter shall stay silent: torch warns of hooks that are not saved, unless they are marked.
        self._handle = _register(tensor, _mark_unsaved(hook))

    def _pass(self, gradient: torch.Tensor | None) -> torch.Tensor | None:
        """Record the gradient on its way, and return what replaces it; None lets it pass."""
        if gradient is None or torch.compiler.is_compiling():
            return None
        self.passes += 1
        self._measure(gradient, self._came)
        if self._edit is None:
            return None
        changed = edited(self.name, self._edit, gradient)
        self._measure(changed, self._went)
        return changed

    def _measure(self, gradient: torch.Tensor, rows: deque[torch.Tensor]) -> None:
        self._unmeasured = refusal(gradient) or ""
        row = self._guard.run("statistics", tensor_statistics, gradient)
        if row is not None:
            rows.append(row)


def tap(tensor: torch.Tensor, name: str = "tensor", keep: bool = False, edit: Edit | None = None) -> Tap:
    """Record the gradient that passes through `tensor` in each backward pass, until the tap is removed.

    Statistics alone keep no gradient alive: what a tap remembers does not grow with the size of the tensor. Taps on one
    tensor see the gradient in the order they were made, each what the one before passed on; a `.grad` that is kept is
    what the last of them passed on. A tap on a tensor that is written in place later sees the gradient of what the
    tensor held when the tap was made, and nothing at all if it is a view.

    Args:
        tensor: A leaf or intermediate, of any shape, dtype and device.
        name: What to call it in texts and errors.
        keep: Keep the gradient itself in `tensor.grad`, by `retain_grad()`; a leaf keeps its own anyway.
        edit: Takes a copy of the gradient and returns the gradient that goes on instead, with the same shape, dtype and
            device: to clip, scale, mask it or add noise. In backward, an edit that breaks this raises a WhygradError.

    Raises:
        WhygradError: No gradient can pass through `tensor`: it does not require grad. The message says why.
    """
    require_tensor("tap", tensor)
    require_function(name, edit)
    with torch._C.DisableTorchFunction():
        if not tensor.requires_grad or is_cut_view(tensor):
            explanation = told(tensor, Kind.of(tensor))
            msg = f"cannot tap `{name}`, no gradient passes through it: {explanation.why} {explanation.fix}"
            raise WhygradError(msg)
        made = Tap(name, edit)
        made._attach(tensor)
        if keep:
            tensor.retain_grad()
    return made


def _read(row: torch.Tensor) -> Statistics:
    return Statistics(*row.tolist())


def _line(label: str, numbers: Statistics | None) -> str:
    if numbers is None or not numbers.count:
        return f"{label}  no element was measured"
    return (
        f"{label}  mean {numbers.mean:.1e}  std {numbers.std:.1e}  mean |g| {numbers.mean_abs:.1e}  "
        f"L2 {numbers.l2:.1e}  max |g| {numbers.max_abs:.1e}  zeros {numbers.zero_share:.1%}  "
        f"NaN/Inf {numbers.nonfinite:.0f}"
    )
