"""`explain(tensor)`: leaf, intermediate or constant, and why its `.grad` is there or not.

tensor[] float32 intermediate grad_fn=MulBackward0 .grad=None
  An intermediate: the output of `*` (MulBackward0).
  `.grad` stays None because backward passes the gradient of an intermediate on and keeps only those of leaves.
  Call `retain_grad()` on it before backward, or `whygrad.tap` it to record statistics without keeping the gradient.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch.nn.parameter import is_lazy

from whygrad.interactive.kinds import Kind, Reason, has_grad, is_cut_view, require_tensor
from whygrad.interactive.notebook import MimeBundle, mime_bundle
from whygrad.interactive.operations import node_name, written
from whygrad.interactive.reasons import told


@dataclass(frozen=True, slots=True, repr=False)
class Explanation:
    """What `explain` found out about one tensor. Its text is one summary line and two or three sentences."""

    summary: str  # `tensor[4, 8] float32 intermediate grad_fn=MulBackward0 .grad=None`
    kind: Kind
    requires_grad: bool
    grad_fn: str | None  # name of the autograd node that made it
    retains_grad: bool
    has_grad: bool
    reason: Reason
    what: str  # one sentence: what the tensor is
    why: str  # one sentence: why `.grad` is there, or is not
    fix: str  # one sentence: what to do; "" where there is nothing to do

    def __str__(self) -> str:
        sentences = (self.what, self.why, self.fix)
        return "\n  ".join([self.summary, *(sentence for sentence in sentences if sentence)])

    def __repr__(self) -> str:
        return str(self)  # a Python prompt shows this

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> MimeBundle:
        del include, exclude  # a notebook picks from the two on its own
        return mime_bundle(str(self))


def explain(tensor: torch.Tensor) -> Explanation:
    """Explain one tensor: leaf, intermediate or constant; whether `.grad` is there, and if not, why and what to do.

    It reads and never writes, on any device, dtype and layout, and triggers no warning of torch. That a backward pass
    has run, reached the tensor or filled a `.grad` that is None by now is known from the first use of `explain`, `tap`
    or `watch` on; where nothing is known, the text says so.

    Args:
        tensor: Any tensor or parameter, of any shape.

    Raises:
        WhygradError: `tensor` is no tensor.
    """
    require_tensor("explain", tensor)
    with torch._C.DisableTorchFunction():  # neither a subclass nor a tracer shall see these reads
        return _explained(tensor)


def _explained(tensor: torch.Tensor) -> Explanation:
    kind = Kind.of(tensor)
    reason, why, fix = told(tensor, kind)
    return Explanation(
        summary=_summary(tensor, kind),
        kind=kind,
        requires_grad=tensor.requires_grad,
        grad_fn=None if tensor.grad_fn is None else node_name(tensor.grad_fn),
        retains_grad=tensor.retains_grad,
        has_grad=has_grad(tensor),
        reason=reason,
        what=_what(tensor, kind),
        why=why,
        fix=fix,
    )


def _summary(tensor: torch.Tensor, kind: Kind) -> str:
    """Return the one line, in the manner of lovely-tensors."""
    shape = "[uninitialized]" if is_lazy(tensor) else list(tensor.shape)
    words = [f"{_noun(tensor)}{shape}", str(tensor.dtype).removeprefix("torch.")]
    if tensor.layout is not torch.strided:
        words.append(str(tensor.layout).removeprefix("torch."))
    if tensor.device.type != "cpu":
        words.append(str(tensor.device))
    words.append(kind)
    if tensor.grad_fn is not None:
        words.append(f"grad_fn={node_name(tensor.grad_fn)}")
    if tensor.retains_grad:
        words.append("retains_grad")
    words.append(".grad is there" if has_grad(tensor) else ".grad=None")
    return " ".join(words)


def _noun(tensor: torch.Tensor) -> str:
    if isinstance(tensor, torch.nn.Parameter):
        return "parameter"
    return "tensor" if type(tensor) is torch.Tensor else type(tensor).__name__


def _what(tensor: torch.Tensor, kind: Kind) -> str:
    if tensor.grad_fn is not None:
        return f"An intermediate: the output of {written(node_name(tensor.grad_fn))}."
    if is_cut_view(tensor):
        return "A leaf by its flags only: a view that autograd did not connect with the tensor it shows."
    if kind is Kind.LEAF:
        return "A leaf: no operation made it, so backward adds its gradient up in `.grad`."
    return "A constant: it does not require grad, so backward computes no gradient for it."
