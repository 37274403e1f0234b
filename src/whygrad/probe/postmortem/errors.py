"""What an exception of autograd's is about, beyond its message: which tensor, made where, changed or freed where.

    Raised(type='RuntimeError', message='one of the variables needed for gradient computation has been modified ...',
           place=train.py:68, reason='modified-inplace', tensor='h', operation='div_',
           made_at=train.py:19, changed_at=train.py:21)

Everything is read after the program has ended, from the frames of the traceback, the graph they hold, and the session's
journal; nothing is changed, and no code of the program runs. What does not show is left open.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

import torch

from whygrad.model import Raised
from whygrad.probe.postmortem.failure import Failure, Found, Watcher
from whygrad.probe.postmortem.freed import explain_freed
from whygrad.probe.postmortem.holders import tensors_of
from whygrad.probe.postmortem.inplace import explain_leaf, explain_modified, explain_view
from whygrad.probe.postmortem.statements import is_a
from whygrad.probe.postmortem.ungraded import explain_ungraded
from whygrad.probe.saved import graph_of, is_leaf_node
from whygrad.probe.source import place_or_none

PART = "post-mortem"  # its name where the guard reports failures
MAX_CHAIN = 16  # causes of causes


@dataclass(frozen=True, slots=True)
class Reason:
    """One of autograd's errors."""

    slug: str
    says: tuple[str, ...]  # any of these is in the message, in lower case
    explain: Callable[[Failure], Found]


def explain_error(watcher: Watcher, error: BaseException) -> Raised:
    """Return what is known about the exception that ended the program."""
    found = _recognised(error)
    if found is None:
        place = place_or_none(watcher.user.of_traceback(error.__traceback__))
        return Raised(type(error).__name__, str(error), place)
    reason, cause = found
    failure = Failure(watcher, cause)
    facts = watcher.guard.run(PART, reason.explain, failure) or Found()
    return Raised(
        type(error).__name__,
        str(error),
        failure.place or place_or_none(watcher.user.of_traceback(error.__traceback__)),
        reason.slug,
        facts.tensor,
        facts.operation,
        facts.made_at,
        facts.changed_at,
    )


def _recognised(error: BaseException) -> tuple[Reason, BaseException] | None:
    """Return the first error of autograd's among an exception and what led to it."""
    chain: list[BaseException] = [error]
    for each in chain:
        text = str(each).lower()
        for reason in REASONS:
            if any(part in text for part in reason.says):
                return reason, each
        further = (each.__cause__, each.__context__, *getattr(each, "exceptions", ()))
        chain += [e for e in further if e is not None and e not in chain and len(chain) < MAX_CHAIN]
    return None


def _explain_unused(failure: Failure) -> Found:
    """Explain "The differentiated Tensor at index 0 appears to not have been used in the graph"."""
    inputs = tensors_of(failure.in_library("t_inputs", "inputs"))
    told = re.search(r"at index (\d+)", failure.text)  # since torch 2.13
    if told is not None:
        return _named(failure, next(iter(inputs[int(told[1]) :]), None))
    nodes = graph_of(failure.roots()).edges
    used = {id(root) for root in failure.roots()} | {id(node.variable) for node in nodes if is_leaf_node(node)}
    return _named(failure, next((t for t in inputs if id(t) not in used and t.grad_fn not in nodes), None))


def _explain_nonleaf(failure: Failure) -> Found:
    """Explain "can't optimize a non-leaf Tensor"."""
    return _named(failure, next(iter(tensors_of(failure.in_library("param"))), None))


def _explain_numpy(failure: Failure) -> Found:
    """Explain "Can't call numpy() on Tensor that requires grad"."""
    return _named(failure, failure.operand(lambda tensor: tensor.requires_grad))


def _explain_inference(failure: Failure) -> Found:
    """Explain "Inference tensors cannot be saved for backward"."""
    tensor = failure.operand(lambda tensor: tensor.is_inference())
    if tensor is None:
        return Found()
    made = failure.journal.made_untracked(tensor)
    name = failure.name(tensor) or failure.made_name(made)
    return Found(name) if made is None else Found(name, made.operation, place_or_none(made.site))


def _explain_ddp(failure: Failure) -> Found:
    """Explain "Expected to have finished reduction in the prior iteration": the parameter that got no gradient."""
    model = failure.in_library("self")
    parameters = torch.nn.Module.named_parameters(model) if is_a(model, torch.nn.Module) else ()
    learning = [parameter for _, parameter in parameters if parameter.requires_grad]
    told = re.search(r"indices which did not receive grad for rank \d+: (\d+)", failure.text)
    return Found() if told is None else _named(failure, next(iter(learning[int(told[1]) :]), None))


def _explain_nothing(_failure: Failure) -> Found:
    return Found()


def _named(failure: Failure, tensor: torch.Tensor | None) -> Found:
    """Return the name and the making of a tensor."""
    if tensor is None:
        return Found()
    made = failure.made(tensor)
    name = failure.name(tensor) or failure.made_name(made)
    return Found(name) if made is None else Found(name, made.operation, place_or_none(made.site))


REASONS = (
    Reason("modified-inplace", ("has been modified by an inplace operation",), explain_modified),
    Reason("modified-inplace", ("is a view and is being modified inplace",), explain_view),
    Reason("graph-freed", ("backward through the graph a second time", "saved tensors after"), explain_freed),
    Reason("inplace-on-leaf", ("leaf variable that requires grad", "moved into the graph interior"), explain_leaf),
    Reason("non-leaf-parameter", ("can't optimize a non-leaf tensor",), _explain_nonleaf),
    Reason("empty-parameter-list", ("optimizer got an empty parameter list",), _explain_nothing),
    Reason("unused-input", ("appears to not have been used in the graph",), _explain_unused),
    Reason("numpy-of-requires-grad", ("can't call numpy() on tensor that requires grad",), _explain_numpy),
    Reason(
        "inference-tensor",
        ("inference tensors cannot be saved", "inplace update to inference tensor", "on inference tensor"),
        _explain_inference,
    ),
    Reason("ddp-unused", ("expected to have finished reduction in the prior iteration",), _explain_ddp),
    Reason("does-not-require-grad", ("does not require grad and does not have a grad_fn",), explain_ungraded),
)
