"""Every reason that `explain` tells apart, and that it only looks."""

from __future__ import annotations

import gc
import weakref
from dataclasses import FrozenInstanceError

import pytest
import torch
from torch import nn
from torch.overrides import TorchFunctionMode

from whygrad import WhygradError, explain
from whygrad.interactive.kinds import Kind, Reason
from whygrad.interactive.operations import written
from whygrad.probe import backwards
from whygrad.probe.backwards import BACKWARDS


@pytest.fixture(autouse=True)
def _fresh_record():
    """Begin each test as a process begins: no backward pass has been seen."""
    BACKWARDS.remove()
    BACKWARDS.install()


def leaf(*shape):
    return torch.ones(shape or (3,), requires_grad=True)


class Swallow(torch.autograd.Function):
    @staticmethod
    def forward(_ctx, x):
        return x * 2

    @staticmethod
    def backward(_ctx, _g):
        return None


# What a tensor is


def test_a_leaf_before_any_backward():
    explanation = explain(leaf())

    assert explanation.kind is Kind.LEAF
    assert explanation.reason is Reason.BACKWARD_NOT_RUN
    assert (explanation.requires_grad, explanation.grad_fn) == (True, None)
    assert not explanation.has_grad
    assert "at its first use" in explanation.why
    assert "backward()" in explanation.fix


def test_a_leaf_with_its_gradient_needs_no_fix():
    a = leaf()
    (a * 2).sum().backward()

    explanation = explain(a)
    assert explanation.reason is Reason.HAS_GRAD
    assert explanation.has_grad
    assert explanation.fix == ""
    assert len(str(explanation).splitlines()) == 3


def test_an_intermediate_that_is_not_retained():
    b = leaf() * leaf()

    before = explain(b)
    b.sum().backward()
    after = explain(b)

    assert before == after
    assert after.kind is Kind.INTERMEDIATE
    assert after.reason is Reason.NOT_RETAINED
    assert after.grad_fn == "MulBackward0"
    assert not after.retains_grad


def test_a_retained_intermediate_through_its_life():
    b = leaf() * leaf()
    b.retain_grad()
    waiting = explain(b)
    b.sum().backward()
    filled = explain(b)
    b.grad = None

    assert (waiting.reason, waiting.retains_grad) == (Reason.BACKWARD_NOT_RUN, True)
    assert (filled.reason, filled.has_grad) == (Reason.HAS_GRAD, True)
    assert explain(b).reason is Reason.RETAINED_LATE  # or cleared: torch shows no difference, and the text says so
    assert "or `.grad` was cleared" in explain(b).why


def test_an_intermediate_retained_after_backward():
    b = leaf() * leaf()
    b.sum().backward()
    b.retain_grad()

    assert explain(b).reason is Reason.RETAINED_LATE
    assert "before `backward()`" in explain(b).fix


def test_a_retained_intermediate_beside_the_loss():
    a = leaf()
    b, c = a * leaf(), a * leaf()
    c.retain_grad()
    b.sum().backward()

    assert explain(c).reason is Reason.NOT_REACHED


def test_a_retained_intermediate_made_after_the_last_backward():
    (leaf() * 2).sum().backward()
    b = leaf() * leaf()
    b.retain_grad()

    assert explain(b).reason is Reason.BACKWARD_NOT_RUN


def test_an_intermediate_that_backward_was_told_to_fill():
    b = leaf() * leaf()
    b.sum().backward(inputs=[b])

    assert explain(b).reason is Reason.HAS_GRAD  # torch retains the gradients of `inputs` on its own


# Leaves without a gradient


def test_a_leaf_that_backward_did_not_reach():
    used, unused = leaf(), leaf()
    (used * 2).sum().backward()

    assert explain(unused).reason is Reason.NOT_REACHED
    assert "no loss depends on it" in explain(unused).why
    assert explain(used).reason is Reason.HAS_GRAD


def test_a_leaf_made_after_the_last_backward():
    (leaf() * 2).sum().backward()
    new = leaf()

    assert explain(new).reason is Reason.BACKWARD_NOT_RUN
    gc.collect(0)  # its age does not show any more, but it was asked for while it did
    assert explain(new).reason is Reason.BACKWARD_NOT_RUN
    assert "since it was made" in explain(new).why


def test_a_leaf_asked_for_before_the_backward_that_misses_it():
    unused = leaf()
    assert explain(unused).reason is Reason.BACKWARD_NOT_RUN
    (leaf() * 2).sum().backward()
    gc.collect(0)

    assert explain(unused).reason is Reason.NOT_REACHED
    assert "no loss depends on it" in explain(unused).why


def test_a_leaf_whose_age_does_not_show_is_told_so():
    unused = leaf()
    (leaf() * 2).sum().backward()
    gc.collect(0)

    for _ in range(2):
        assert explain(unused).reason is Reason.NOT_REACHED
        assert "whether it is younger than those, it does not show" in explain(unused).why


def test_a_leaf_behind_a_cut():
    a, b = leaf(), leaf()
    (a.detach() * b).sum().backward()

    assert explain(a).reason is Reason.NOT_REACHED
    assert "`detach()`" in explain(a).fix


@pytest.mark.parametrize("clear", ["zero_grad", "none"])
def test_a_leaf_cleared_after_backward(clear):
    model = nn.Linear(2, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model(torch.ones(1, 2)).sum().backward()
    if clear == "zero_grad":
        optimizer.zero_grad()
    else:
        model.weight.grad = None

    assert explain(model.weight).reason is Reason.CLEARED
    assert "`zero_grad()`" in explain(model.weight).fix


def test_a_leaf_cleared_and_then_missed_was_still_cleared():
    a, b = leaf(), leaf()
    (a * 2).sum().backward()
    a.grad = None
    (b * 2).sum().backward()

    assert explain(a).reason is Reason.CLEARED


def test_zeros_are_a_gradient():
    model = nn.Linear(2, 2)
    model(torch.ones(1, 2)).sum().backward()
    model.zero_grad(set_to_none=False)

    assert explain(model.weight).reason is Reason.HAS_GRAD


def test_a_leaf_cleared_by_a_hook_within_backward():
    a = leaf()
    a.register_post_accumulate_grad_hook(lambda tensor: setattr(tensor, "grad", None))
    (a * 2).sum().backward()

    assert explain(a).reason is Reason.CLEARED


def test_a_leaf_reached_in_vain():
    a = leaf()
    Swallow.apply(a).sum().backward()

    assert explain(a).reason is Reason.NO_GRADIENT_ARRIVED
    assert "`autograd.Function`" in explain(a).fix


def test_a_leaf_that_inputs_left_out():
    a, b = leaf(), leaf()
    (a * b).sum().backward(inputs=[a])

    assert explain(a).reason is Reason.HAS_GRAD
    assert explain(b).reason is Reason.NO_GRADIENT_ARRIVED
    assert "`backward(inputs=...)` left it out" in explain(b).why


def test_a_sparse_leaf_that_was_cleared_is_no_loss_of_words():
    a = torch.eye(3).to_sparse().requires_grad_()
    torch.sparse.sum(a).backward()
    assert explain(a).reason is Reason.HAS_GRAD
    a.grad = None

    assert explain(a).reason is Reason.NOT_REACHED  # it has no storage, by which it would be known again
    assert "whether the one backward pass reached it is not known" in explain(a).why
    assert "sparse_coo" in explain(a).summary


def test_passes_that_were_not_looked_over_are_not_judged(monkeypatch):
    monkeypatch.setattr(backwards, "WALK_SHARE", 0.0)
    monkeypatch.setattr(backwards, "ALWAYS_WALKED", 1)
    unused, b = leaf(), leaf() * leaf()
    b.retain_grad()
    for _ in range(3):
        (leaf() * 2).sum().backward()

    assert "not reached by any of the 3 backward passes, of which 1 were looked at." in explain(unused).why
    assert "whether any of the 3 backward passes reached it is not known" in explain(b).why


# Leaves made non-leaf


LOST = {
    "* 0.1": (lambda: leaf() * 0.1, "`*` (MulBackward0)"),
    "/ 10": (lambda: leaf() / 10, "`/` (DivBackward0)"),
    "to": (lambda: leaf().to(torch.float64), "`.to()` (ToCopyBackward0)"),
    "half": (lambda: leaf().half(), "`.to()` (ToCopyBackward0)"),
    "view": (lambda: leaf().view(3, 1), "`.view()` (ViewBackward0)"),
    "t": (lambda: leaf(2, 2).t(), "`.t()` (TBackward0)"),
    "clone": (lambda: leaf().clone(), "`clone()` (CloneBackward0)"),
    "Parameter to": (lambda: nn.Parameter(torch.ones(3)).to(torch.float64), "`.to()` (ToCopyBackward0)"),
    "* 0.1 view": (lambda: (leaf() * 0.1).view(1, 3), "`*` (MulBackward0) and `.view()` (ViewBackward0)"),
}


@pytest.mark.parametrize(("make", "operation"), LOST.values(), ids=LOST)
def test_a_leaf_lost_to_an_operation_names_the_operation(make, operation):
    explanation = explain(make())

    assert explanation.reason is Reason.MADE_NON_LEAF
    assert f"because {operation} made it out of a leaf that nothing holds" in explanation.why
    assert "`requires_grad_()`" in explanation.fix


def test_a_copy_of_a_leaf_that_is_still_held_points_at_the_leaf():
    a = leaf()
    copy = a.to(torch.float64)

    assert explain(copy).reason is Reason.MADE_NON_LEAF
    assert "`.to()` (ToCopyBackward0)" in explain(copy).why
    assert "Read `.grad` of the leaf" in explain(copy).fix
    assert explain(a.view(1, 3)).reason is Reason.MADE_NON_LEAF


def test_a_computation_on_a_leaf_that_is_still_held_is_an_ordinary_intermediate():
    a = leaf()
    model = nn.Linear(3, 3)

    for intermediate in (a * 3, a + a, a.sum(), model.weight * 2, model(a), leaf().sum(), leaf() * leaf()):
        assert explain(intermediate).reason is Reason.NOT_RETAINED


def test_a_long_computation_is_not_the_making_of_a_parameter():
    b = leaf()
    for _ in range(20):
        b = b * 1.5

    assert explain(b).reason is Reason.NOT_RETAINED


def test_a_lost_leaf_is_recognised_after_backward_too():
    scale = leaf() * 0.1
    scale.sum().backward()

    assert explain(scale).reason is Reason.MADE_NON_LEAF


# Constants


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool])
def test_integers_and_booleans_cannot_require_grad(dtype):
    explanation = explain(torch.zeros(3, dtype=dtype))

    assert explanation.kind is Kind.CONSTANT
    assert explanation.reason is Reason.INTEGER_TYPE
    assert str(dtype).removeprefix("torch.") in explanation.why


def test_an_ordinary_constant_is_told_without_guessing():
    explanation = explain(torch.ones(3))

    assert (explanation.kind, explanation.reason) == (Kind.CONSTANT, Reason.NOT_REQUIRED)
    assert "it does not show" in explanation.why
    assert "`requires_grad_()`" in explanation.fix


def test_a_frozen_parameter():
    model = nn.Linear(2, 2).requires_grad_(requires_grad=False)

    assert explain(model.weight).reason is Reason.NOT_REQUIRED
    assert "frozen" in explain(model.weight).why


def test_a_parameter_frozen_after_backward_keeps_an_old_gradient():
    model = nn.Linear(2, 2)
    model(torch.ones(1, 2)).sum().backward()
    model.requires_grad_(requires_grad=False)

    explanation = explain(model.weight)
    assert (explanation.kind, explanation.reason) == (Kind.CONSTANT, Reason.HAS_GRAD)
    assert "adds nothing to it any more" in explanation.why


CUTS = {"detach": torch.Tensor.detach, "data": lambda t: t.data, "detach view": lambda t: t.detach().view(-1)}


@pytest.mark.parametrize("cut", CUTS)
@pytest.mark.parametrize("kind", ["a leaf", "an intermediate"])
def test_a_detached_tensor_while_its_source_lives(cut, kind):
    source = leaf() if kind == "a leaf" else leaf() * 2
    explanation = explain(CUTS[cut](source))

    assert explanation.kind is Kind.CONSTANT
    assert explanation.reason is Reason.DETACHED
    assert f"shares the memory of {kind} of shape [3]" in explanation.why


def test_a_detached_tensor_whose_source_is_gone_looks_like_any_constant():
    detached = (leaf() * 2).detach()

    assert explain(detached).reason is Reason.NOT_REQUIRED
    assert "detached from one that is gone" in explain(detached).why


def test_views_of_constants_are_not_detached():
    batch = torch.ones(4, 2)
    rows = batch[:2]

    assert explain(batch).reason is Reason.NOT_REQUIRED
    assert explain(rows).reason is Reason.NOT_REQUIRED


def test_grad_mode_is_off():
    a = leaf()
    with torch.no_grad():
        b = a * 2
        explanation = explain(b)

    assert explanation.reason is Reason.NO_GRAD
    assert "`torch.no_grad()`" in explanation.fix
    assert explain(b).reason is Reason.NOT_REQUIRED  # outside, nothing shows it any more


def test_a_leaf_is_a_leaf_while_grad_mode_is_off():
    a = leaf()
    (a * 2).sum().backward()
    with torch.no_grad():
        assert explain(a).reason is Reason.HAS_GRAD


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
@pytest.mark.parametrize("kind", ["leaf", "intermediate"])
def test_a_view_made_while_grad_mode_was_off_only_claims_to_require_grad(mode, kind):
    source = leaf() if kind == "leaf" else leaf() * 2
    with mode():
        view = source[:1]
    (view * 2).sum().requires_grad_().backward()

    explanation = explain(view)
    assert view.grad is None  # torch calls it a leaf that requires grad all the same
    assert explanation.requires_grad
    assert explanation.reason is Reason.NO_GRAD
    assert "gradients end at it" in explanation.why


def test_a_view_made_before_its_base_required_grad():
    base = torch.ones(3)
    view = base[:1]
    base.requires_grad_()

    assert explain(view).reason is Reason.NOT_REQUIRED
    assert "before the tensor it shows required grad" in explain(view).why


def test_a_view_that_requires_grad_itself_is_a_leaf():
    view = torch.ones(3)[:1].requires_grad_()
    assert explain(view).reason is Reason.BACKWARD_NOT_RUN
    (view * 2).sum().backward()

    assert explain(view).reason is Reason.HAS_GRAD


def test_an_inference_tensor():
    with torch.inference_mode():
        made = leaf() * 2
        inside = explain(made)

    assert inside.reason is explain(made).reason is Reason.INFERENCE_MODE
    assert "`clone()`" in inside.fix


# Every sort of tensor


class Loud(torch.Tensor):
    """A subclass that notices when a torch function is called on it."""

    calls = 0

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        cls.calls += 1
        return super().__torch_function__(func, types, args, kwargs or {})


def test_a_subclass_is_read_without_its_notice():
    loud = torch.ones(2).as_subclass(Loud).requires_grad_()
    Loud.calls = 0

    assert explain(loud).summary.startswith("Loud[2] float32 leaf")
    assert Loud.calls == 0


def test_a_mode_does_not_see_what_explain_reads():
    seen = []

    class Watching(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            seen.append(func)
            return func(*args, **(kwargs or {}))

    tensors = [leaf(), leaf() * 2, leaf().detach()]
    with Watching():
        for tensor in tensors:
            explain(tensor)

    assert seen == []


@pytest.mark.parametrize(
    ("tensor", "summary"),
    [
        (torch.ones(4, 8, requires_grad=True) * 2, "tensor[4, 8] float32 intermediate grad_fn=MulBackward0 .grad=None"),
        (nn.Parameter(torch.ones(2)), "parameter[2] float32 leaf .grad=None"),
        (torch.ones((), dtype=torch.float64), "tensor[] float64 constant .grad=None"),
        (torch.ones(0, requires_grad=True), "tensor[0] float32 leaf .grad=None"),
        (torch.ones(2, device="meta", requires_grad=True), "tensor[2] float32 meta leaf .grad=None"),
        (torch.ones(2, device="meta"), "tensor[2] float32 meta constant .grad=None"),
        (torch.ones(2, dtype=torch.complex64, requires_grad=True), "tensor[2] complex64 leaf .grad=None"),
        (torch.ones(2, dtype=torch.bfloat16), "tensor[2] bfloat16 constant .grad=None"),
        (torch.eye(2).to_sparse(), "tensor[2, 2] float32 sparse_coo constant .grad=None"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_the_summary_line(tensor, summary):
    assert explain(tensor).summary == summary
    assert str(explain(tensor)).splitlines()[0] == summary


@pytest.mark.filterwarnings("ignore:.*nested tensors is in prototype stage")
def test_a_nested_tensor():
    nested = torch.nested.nested_tensor([torch.ones(2), torch.ones(3)], layout=torch.jagged)

    assert explain(nested).kind is Kind.CONSTANT


def test_tensors_inside_a_transform():
    told = []

    def function(x):
        told.extend([explain(x), explain(x * 2)])
        return (x * 2).sum()

    torch.func.grad(function)(torch.ones(2))
    torch.vmap(function)(torch.ones(2, 2))

    assert [explanation.kind for explanation in told][:2] == [Kind.LEAF, Kind.INTERMEDIATE]


@pytest.mark.parametrize("wrong", [None, 3.0, [torch.ones(1)], nn.Linear(1, 1)], ids=lambda value: type(value).__name__)
def test_anything_else_is_refused_in_one_sentence(wrong):
    with pytest.raises(WhygradError, match=rf"^explain\(\) takes a tensor, not {type(wrong).__name__}$"):
        explain(wrong)


def test_a_lazy_parameter_has_no_shape_yet():
    assert explain(nn.LazyLinear(3).weight).summary == "parameter[uninitialized] float32 leaf .grad=None"


def test_a_tensor_written_in_place_was_made_by_the_write():
    b = leaf().clone()
    b[0] = 5

    assert explain(b).grad_fn == "CopySlices"
    assert "`[...] = ...` (CopySlices)" in explain(b).what


# It only looks


def test_it_changes_nothing_and_holds_nothing():
    a = leaf()
    b = a * 2
    version, grad_fn, reference = a._version, b.grad_fn, weakref.ref(b)
    explain(a)
    explain(b)

    assert (a._version, b.grad_fn, a.grad, a._backward_hooks) == (version, grad_fn, None, None)
    del b, grad_fn
    assert reference() is None


def test_a_module_can_swap_its_parameters_after_they_were_explained():
    model = nn.Linear(2, 2)
    model(torch.ones(1, 2)).sum().backward()
    explain(model.weight)
    model.zero_grad()
    swapping = torch.__future__.get_swap_module_params_on_conversion()
    torch.__future__.set_swap_module_params_on_conversion(True)
    try:
        model.to(torch.float64)
    finally:
        torch.__future__.set_swap_module_params_on_conversion(swapping)

    assert model.weight.dtype is torch.float64


# torch.compile itself reads `.grad` of an intermediate where a graph breaks, and imports what is deprecated.
@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor", "ignore::DeprecationWarning")
def test_inside_a_compiled_function_it_breaks_the_graph_and_answers():
    model = nn.Linear(2, 2)

    def step(x):
        hidden = model(x)
        return hidden.relu(), explain(hidden)

    output, explanation = torch.compile(step, backend="eager")(torch.ones(1, 2))
    torch._dynamo.reset()

    assert torch.equal(output, step(torch.ones(1, 2))[0])
    assert explanation.reason is Reason.NOT_RETAINED


# How it is shown


def test_the_text_is_a_summary_and_at_most_three_sentences():
    text = str(explain(leaf() * leaf()))

    assert repr(explain(leaf() * leaf())) == text
    assert len(text.splitlines()) == 4
    assert all(line.startswith("  ") and line.endswith(".") for line in text.splitlines()[1:])


def test_a_notebook_gets_escaped_html_and_the_same_text():
    odd = type("<b>Odd</b>", (torch.Tensor,), {})
    explanation = explain(torch.ones(2).as_subclass(odd))
    bundle = explanation._repr_mimebundle_(include=None, exclude=None)

    assert bundle["text/plain"] == str(explanation)
    assert "&lt;b&gt;Odd&lt;/b&gt;[2]" in bundle["text/html"]
    assert "<b>" not in bundle["text/html"]
    assert "<code>.grad</code>" in bundle["text/html"]


def test_an_explanation_is_frozen():
    with pytest.raises(FrozenInstanceError):
        explain(leaf()).reason = Reason.CLEARED


@pytest.mark.parametrize(
    ("node", "words"),
    [
        ("MulBackward0", "`*` (MulBackward0)"),
        ("PowBackward1", "`**` (PowBackward1)"),
        ("LogSoftmaxBackward0", "`log_softmax()` (LogSoftmaxBackward0)"),
        ("CopySlices", "`[...] = ...` (CopySlices)"),
        ("StraightThroughBackward", "`StraightThrough` (StraightThroughBackward)"),
        ("strange<name>", "`strange<name>`"),
    ],
)
def test_operations_are_named_as_they_are_written(node, words):
    assert written(node) == words
