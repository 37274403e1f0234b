"""Why `.grad` is there or is not, in words.

A tensor shows some of the reasons itself; for the rest, `probe.backwards` knows which backward passes have run.
"""

from __future__ import annotations

import torch

from whygrad.interactive.constants import constant, cut_view
from whygrad.interactive.kinds import CUTS, Kind, Reason, Told, has_grad, is_cut_view
from whygrad.interactive.operations import changes_no_value, written
from whygrad.interactive.origin import Origin, origin_of
from whygrad.probe.backwards import BACKWARDS, Past

# What no tensor shows is known of the backward passes that run from now on.
BACKWARDS.install()


def told(tensor: torch.Tensor, kind: Kind) -> Told:
    """Return the reason for the state of `.grad`, and its words."""
    if has_grad(tensor):
        return Told(Reason.HAS_GRAD, *_there(kind))
    if kind is Kind.CONSTANT:
        return constant(tensor)
    if is_cut_view(tensor):
        return cut_view(tensor)
    past = BACKWARDS.past(tensor)
    if past.arrived:
        return Told(
            Reason.CLEARED,
            "`.grad` is None because it was cleared, by `zero_grad()` or `.grad = None`, after backward had filled it.",
            "Read `.grad` between `backward()` and `zero_grad()`.",
        )
    if kind is Kind.INTERMEDIATE and not tensor.retains_grad:
        return _not_retained(tensor)
    return _not_filled(past, kind)


def _there(kind: Kind) -> tuple[str, str]:
    if kind is Kind.LEAF:
        return "`.grad` is there: the sum over the backward passes since it was last cleared.", ""
    if kind is Kind.CONSTANT:
        return "`.grad` is there from a time when the tensor required grad; backward adds nothing to it any more.", ""
    return "`.grad` is there because `retain_grad()` was called on it before backward.", ""


def _not_retained(tensor: torch.Tensor) -> Told:
    origin = origin_of(tensor)
    if origin is not None and not origin.held:
        return _lost_leaf(origin)
    if origin is not None and all(changes_no_value(node) for node in origin.nodes):
        return _copied_leaf(origin)
    return Told(
        Reason.NOT_RETAINED,
        "`.grad` stays None because backward passes the gradient of an intermediate on and keeps only those of leaves.",
        "Call `retain_grad()` on it before backward, or `whygrad.tap` it to record statistics without keeping the "
        "gradient.",
    )


def _lost_leaf(origin: Origin) -> Told:
    return Told(
        Reason.MADE_NON_LEAF,
        f"`.grad` stays None because {_joined(origin)} made it out of a leaf that nothing holds any more, and backward "
        "fills that leaf's `.grad`.",
        "Apply the operation first, then call `requires_grad_()` on the result or wrap it in `nn.Parameter`.",
    )


def _copied_leaf(origin: Origin) -> Told:
    return Told(
        Reason.MADE_NON_LEAF,
        f"`.grad` stays None because {_joined(origin)} made it out of a leaf, and backward fills that leaf's `.grad`.",
        "Read `.grad` of the leaf, or call `retain_grad()` on this tensor before backward.",
    )


def _joined(origin: Origin) -> str:
    return " and ".join(written(node) for node in origin.nodes)


def _not_filled(past: Past, kind: Kind) -> Told:
    """Tell why backward has not filled a `.grad` that it would keep."""
    if past.ran is False:
        return _not_run(past)
    if past.reached:
        return _reached_in_vain(kind)
    passes = "the one backward pass" if past.passes == 1 else f"any of the {past.passes} backward passes"
    if past.reached is None:
        why = f"`.grad` is None; whether {passes} reached it is not known."
    else:
        looked_at = f", of which {past.walked} were looked at" if past.walked < past.passes else ""
        why = f"`.grad` is None because it was not reached by {passes}{looked_at}{_certainty(past)}."
    return Told(Reason.NOT_REACHED, why, f"Use it on the way to the loss, and look there for {CUTS}.")


def _certainty(past: Past) -> str:
    if past.ran is None:
        return "; whether it is younger than those, it does not show"
    return ": no loss depends on it" if past.walked == past.passes else ""


def _not_run(past: Past) -> Told:
    since = "since it was made" if past.passes else "since whygrad began to look, at its first use"
    return Told(
        Reason.BACKWARD_NOT_RUN,
        f"`.grad` is None because no backward pass has been seen {since}.",
        "Call `backward()` on a loss that depends on it.",
    )


def _reached_in_vain(kind: Kind) -> Told:
    if kind is Kind.INTERMEDIATE:
        return Told(
            Reason.RETAINED_LATE,
            "`.grad` is None although backward went through it: `retain_grad()` was called only after that, or `.grad` "
            "was cleared since.",
            "Call `retain_grad()` before `backward()`, and read `.grad` before it is cleared.",
        )
    return Told(
        Reason.NO_GRADIENT_ARRIVED,
        "`.grad` is None although backward reached it: an operation on the way returned None for its gradient, or "
        "`backward(inputs=...)` left it out.",
        "Look for an `autograd.Function` whose `backward` returns None for an input that is to learn.",
    )
