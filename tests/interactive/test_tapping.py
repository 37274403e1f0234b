"""A tap records, keeps or changes a gradient, and leaves everything else as it was."""

from __future__ import annotations

import copy
import gc
import io
import math
import subprocess
import sys
import textwrap
import weakref

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.utils.checkpoint import checkpoint

from whygrad import WhygradError, tap
from whygrad.interactive import tapping


def leaf(*shape):
    return torch.ones(shape or (3,), requires_grad=True)


def weighted(tensor, weights):
    """Return a loss whose gradient with respect to `tensor` is `weights`."""
    return (tensor * torch.as_tensor(weights, dtype=tensor.dtype)).sum()


# Recording


@pytest.mark.parametrize("kind", ["leaf", "intermediate"])
def test_it_records_the_gradient_that_passes(kind):
    tensor = leaf(4) if kind == "leaf" else leaf(4) * 2
    tapped = tap(tensor, "t")
    weighted(tensor, [1.0, -3.0, 0.0, 0.0]).backward()

    numbers = tapped.statistics
    assert (numbers.count, numbers.sum, numbers.sum_abs, numbers.max_abs) == (4, -2, 4, 3)
    assert numbers.l2 == pytest.approx(math.sqrt(10))
    assert numbers.zero_share == 0.5
    assert tapped.passes == 1


def test_nan_and_inf_are_counted_and_left_out_of_the_sums():
    b = leaf(4) * 2
    tapped = tap(b, "b")
    weighted(b, [math.nan, math.inf, -math.inf, 2.0]).backward()

    assert (tapped.statistics.nans, tapped.statistics.infs, tapped.statistics.sum) == (1, 2, 2)


def test_each_backward_pass_adds_to_the_history():
    a = leaf()
    tapped = tap(a, "a")
    for factor in (1.0, 2.0, 3.0):
        weighted(a, [factor] * 3).backward()

    assert [numbers.mean for numbers in tapped.history] == [1.0, 2.0, 3.0]
    assert tapped.history_after == tapped.history
    assert tapped.statistics == tapped.before == tapped.after == tapped.history[-1]
    assert a.grad.tolist() == [6.0, 6.0, 6.0]


def test_it_sees_one_graph_as_often_as_backward_runs_through_it():
    b = leaf() * 2
    tapped = tap(b, "b")
    loss = b.sum()
    loss.backward(retain_graph=True)
    loss.backward()

    assert tapped.passes == len(tapped.history) == 2


def test_before_the_first_pass_there_is_nothing():
    tapped = tap(leaf(), "a")

    assert (tapped.history, tapped.statistics, tapped.before, tapped.after) == ([], None, None, None)
    assert str(tapped) == "tap `a`: no gradient has passed yet"


def test_a_tensor_beside_the_loss_has_no_pass():
    a = leaf()
    b, beside = a * 2, a * 3
    tapped = tap(beside, "beside")
    b.sum().backward()

    assert tapped.passes == 0


def test_an_output_whose_sibling_alone_is_used_has_no_pass():
    first, second = (leaf(4) * 1).split(2)
    unused, used = tap(first, "first"), tap(second, "second")
    second.sum().backward()

    assert (unused.passes, used.passes) == (0, 1)


def test_autograd_grad_passes_it_too():
    b = leaf() * 2
    tapped = tap(b, "b", edit=lambda g: g * 10)
    (gradient,) = torch.autograd.grad(b.sum(), b)

    assert tapped.passes == 1
    assert gradient.tolist() == [10.0, 10.0, 10.0]


def test_a_checkpointed_module_passes_its_parameters_gradient_once():
    model, x = nn.Linear(3, 3), leaf(2, 3)
    tapped = tap(model.weight, "weight")
    checkpoint(model, x, use_reentrant=False).sum().backward()

    assert tapped.passes == 1


def test_the_gradient_of_a_written_intermediate_is_that_of_its_value_before():
    b = leaf() * 2
    tapped = tap(b, "b")
    b.mul_(5)
    b.sum().backward()

    assert tapped.statistics.mean == 5.0


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
def test_every_floating_point_type_is_measured(dtype):
    a = torch.ones(3, dtype=dtype, requires_grad=True)
    tapped = tap(a, "a")
    (a * 2).sum().backward()

    assert tapped.statistics.mean == 2.0


def test_a_sparse_gradient_counts_as_the_dense_one_it_stands_for():
    table = nn.Embedding(10, 4, sparse=True)
    tapped = tap(table.weight, "weight")
    table(torch.tensor([1, 1])).sum().backward()

    assert (tapped.statistics.count, tapped.statistics.zeros, tapped.statistics.max_abs) == (40, 36, 2)


def test_an_empty_tensor_and_a_single_number():
    empty, number = torch.ones(0, requires_grad=True), torch.tensor(1.0, requires_grad=True)
    taps = tap(empty, "empty"), tap(number, "number")
    (empty.sum() + number * 3).backward()

    assert [tapped.statistics.count for tapped in taps] == [0, 1]
    assert "no element was measured" in str(taps[0])
    assert taps[1].statistics.mean == 3.0


def test_what_cannot_be_measured_is_said_and_can_still_be_kept_and_edited():
    z = torch.ones(2, dtype=torch.complex64, requires_grad=True) * 1
    tapped = tap(z, "z", keep=True, edit=lambda g: g * 2)
    z.abs().sum().backward()

    assert tapped.passes == 1
    assert "complex64 tensors are not measured" in str(tapped)
    assert z.grad.tolist() == [2, 2]


def test_gradients_that_are_differentiated_again():
    a = leaf()
    tapped = tap(a, "a", edit=lambda g: g * 2)
    (first,) = torch.autograd.grad((a**3).sum(), a, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), a)

    assert (first.tolist(), second.tolist()) == ([6.0] * 3, [24.0] * 3)  # 2 * 3a^2, and 2 * (2 * 6a)
    assert [numbers.mean for numbers in tapped.history] == [3.0, 12.0]


def test_an_error_in_the_statistics_stays_out_of_the_program(monkeypatch):
    def broken(_gradient):
        raise ZeroDivisionError

    monkeypatch.setattr(tapping, "tensor_statistics", broken)
    b = leaf() * 2
    tapped = tap(b, "b")
    b.sum().backward()

    assert tapped.passes == 1
    assert tapped.statistics is None
    assert "ZeroDivisionError" in str(tapped)


# Keeping


def test_keep_stores_the_gradient_of_an_intermediate():
    b = leaf() * 2
    tap(b, "b", keep=True)
    weighted(b, [1.0, 2.0, 3.0]).backward()

    assert b.grad.tolist() == [1.0, 2.0, 3.0]


def test_without_keep_an_intermediate_retains_nothing():
    b = leaf() * 2
    tap(b, "b")

    assert not b.retains_grad


def test_keep_on_a_leaf_changes_nothing():
    a = leaf()
    tap(a, "a", keep=True)
    (a * 2).sum().backward()

    assert a.grad.tolist() == [2.0, 2.0, 2.0]


# Editing

NOISE = torch.tensor([0.5, -0.5, 0.25])
EDITS = {
    "clip": (lambda g: g.clamp(-1, 1), [1.0, -1.0, 0.5]),
    "clip in place": (lambda g: g.clamp_(-1, 1), [1.0, -1.0, 0.5]),
    "scale": (lambda g: g * 0.5, [1.0, -2.0, 0.25]),
    "noise": (lambda g: g + NOISE, [2.5, -4.5, 0.75]),
    "mask": (lambda g: g * (g > 0), [2.0, 0.0, 0.5]),
    "nothing": (lambda g: g, [2.0, -4.0, 0.5]),
    "zeros": (torch.zeros_like, [0.0, 0.0, 0.0]),
}


@pytest.mark.parametrize("edit", EDITS)
@pytest.mark.parametrize("kind", ["leaf", "intermediate"])
def test_an_edit_changes_what_goes_on_and_both_sides_are_recorded(kind, edit):
    function, expected = EDITS[edit]
    source = leaf()
    tensor = source if kind == "leaf" else source * 1
    tapped = tap(tensor, "t", edit=function)
    weighted(tensor, [2.0, -4.0, 0.5]).backward()

    assert source.grad.tolist() == expected
    assert (tapped.before.max_abs, tapped.before.sum) == (4.0, -1.5)
    assert tapped.after.sum == sum(expected)
    assert tapped.statistics == tapped.before == tapped.history[0]
    assert tapped.after == tapped.history_after[0]


def test_an_edit_in_place_reaches_no_other_branch():
    a, other = leaf(), leaf()
    b = a * 1
    tap(b, "b", edit=lambda g: g.mul_(100))
    (b + other).sum().backward()  # addition hands the very same gradient to both

    assert (a.grad.tolist(), other.grad.tolist()) == ([100.0] * 3, [1.0] * 3)


def test_what_is_kept_is_what_went_on():
    b = leaf() * 2
    tap(b, "b", keep=True, edit=lambda g: g * 3)
    b.sum().backward()

    assert b.grad.tolist() == [3.0, 3.0, 3.0]


WRONG = {
    "shape": (lambda g: g[:1], r"returned a tensor of shape \[1\], dtype float32 on cpu, expected shape \[3\]"),
    "broadcast": (lambda g: g.sum(), r"returned a tensor of shape \[\], dtype float32 on cpu, expected shape \[3\]"),
    "dtype": (lambda g: g.double(), r"dtype float64 on cpu, expected shape \[3\], dtype float32 on cpu"),
    "device": (lambda g: g.to("meta"), r"on meta, expected shape \[3\], dtype float32 on cpu"),
    "nothing": (lambda _: None, r"returned NoneType, expected a tensor of shape \[3\], dtype float32 on cpu"),
    "number": (lambda _: 1.0, r"returned float, expected a tensor"),
    "array": (lambda g: g.tolist(), r"returned list, expected a tensor"),
}


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("kind", ["leaf", "intermediate"])
def test_an_edit_that_gives_back_something_else_is_a_clear_error(kind, wrong):
    function, words = WRONG[wrong]
    tensor = leaf() if kind == "leaf" else leaf() * 2
    tap(tensor, "hidden", edit=function)
    with pytest.raises(WhygradError, match=rf"^the edit of tap `hidden` .*{words}"):
        (tensor * 2).sum().backward()


def test_an_error_of_the_edit_itself_is_the_users():
    b = leaf() * 2
    tap(b, "b", edit=lambda g: g / {}["factor"])
    with pytest.raises(KeyError, match="factor"):
        b.sum().backward()


def test_an_edit_that_is_no_function_is_refused_at_once():
    with pytest.raises(WhygradError, match="the edit of tap `a` is a function of the gradient, not float"):
        tap(leaf(), "a", edit=0.5)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.floats(-1e6, 1e6, width=32), min_size=1, max_size=20), st.floats(-10, 10, width=32), st.booleans())
def test_scaling_any_gradient_scales_its_statistics(weights, factor, keep):
    source = leaf(len(weights))
    b = source * 1
    with tap(b, "b", keep=keep, edit=lambda g: g * factor) as tapped:
        weighted(b, weights).backward()

    expected = torch.tensor(weights) * factor
    assert torch.equal(source.grad, expected)
    assert tapped.after.sum_abs == pytest.approx(expected.double().abs().sum().item())
    assert tapped.before.max_abs == torch.tensor(weights).abs().max().item()


# Several, and none any more


def test_several_taps_on_one_tensor_see_the_gradient_in_turn():
    b = leaf() * 2
    taps = [tap(b, "1"), tap(b, "2", edit=lambda g: g * 10), tap(b, "3", edit=lambda g: g + 1), tap(b, "4", keep=True)]
    b.sum().backward()

    assert [tapped.before.mean for tapped in taps] == [1.0, 1.0, 10.0, 11.0]
    assert [tapped.after.mean for tapped in taps] == [1.0, 10.0, 11.0, 11.0]
    assert b.grad.tolist() == [11.0, 11.0, 11.0]


def test_taps_along_a_chain_see_the_edit_of_those_behind_them():
    a = leaf()
    b = a * 2
    first, second = tap(a, "a"), tap(b, "b", edit=lambda g: g * 5)
    b.sum().backward()

    assert (second.after.mean, first.statistics.mean) == (5.0, 10.0)


@pytest.mark.parametrize("kind", ["leaf", "intermediate"])
def test_a_removed_tap_is_gone_and_its_numbers_stay(kind):
    source = leaf()
    tensor = source if kind == "leaf" else source * 1
    tapped = tap(tensor, "t", edit=lambda g: g * 10)
    other = tap(tensor, "other")
    loss = tensor.sum()
    loss.backward(retain_graph=True)
    tapped.remove()
    tapped.remove()
    loss.backward()

    assert (tapped.passes, other.passes) == (1, 2)
    assert source.grad.tolist() == [11.0, 11.0, 11.0]
    assert tapped.after.mean == 10.0


def test_a_tap_that_removes_itself_while_the_gradient_passes():
    a = leaf()

    def once(gradient):
        tapped.remove()
        return gradient * 10

    tapped = tap(a, "a", edit=once)
    for _ in range(2):
        a.sum().backward()

    assert a.grad.tolist() == [11.0, 11.0, 11.0]


def test_as_a_context_it_is_removed_at_the_end_also_after_an_error():
    a = leaf()

    def fail():
        with tap(a, "a") as tapped:
            taps.append(tapped)
            a.sum().backward()
            raise ZeroDivisionError

    taps = []
    with pytest.raises(ZeroDivisionError):
        fail()
    a.sum().backward()

    assert taps[0].passes == 1
    assert not a._backward_hooks


# What cannot be tapped


def cut_view():
    a = leaf()
    with torch.no_grad():
        return a[:1]


UNTAPPABLE = {
    "integers": (lambda: torch.arange(3), "int64 tensors cannot require grad"),
    "constant": (lambda: torch.ones(3), "it does not show"),
    "frozen": (lambda: nn.Parameter(torch.ones(3), requires_grad=False), "is frozen"),
    "cut view": (cut_view, "made while grad mode was off"),
}


@pytest.mark.parametrize("sort", UNTAPPABLE)
def test_a_tensor_without_a_gradient_is_refused_with_the_reason(sort):
    make, words = UNTAPPABLE[sort]
    with pytest.raises(WhygradError, match=rf"^cannot tap `hidden`, no gradient passes through it: .*{words}"):
        tap(make(), "hidden")


def test_what_is_no_tensor_is_refused():
    with pytest.raises(WhygradError, match=r"^tap\(\) takes a tensor, not Linear$"):
        tap(nn.Linear(1, 1), "layer")


# Nothing else changes


def reachable_from(origin, depth=3):
    found = [origin]
    for _ in range(depth):
        found = [inner for outer in found if not isinstance(outer, type) for inner in gc.get_referents(outer)]
        yield from found


@pytest.mark.parametrize("edit", [None, lambda g: g * 1])
def test_neither_the_tensor_nor_the_gradient_is_kept_alive(edit):
    b = leaf() * 2
    passed = []
    b.register_hook(lambda g: passed.append(weakref.ref(g)))
    tapped = tap(b, "b", edit=edit)
    b.sum().backward()
    tensor = weakref.ref(b)
    del b

    assert len(passed) == 1
    assert (passed[0](), tensor()) == (None, None)
    assert tapped.passes == 1


def test_a_tap_that_nobody_holds_goes_with_its_graph():
    b = leaf() * 2
    reference = weakref.ref(tap(b, "b"))
    b.sum().backward()
    alive = reference() is not None
    del b

    assert alive
    assert reference() is None


def test_its_memory_does_not_grow_with_the_tensor_nor_beyond_the_history(monkeypatch):
    monkeypatch.setattr(tapping, "HISTORY", 5)
    a = leaf(100, 100)
    tapped = tap(a, "a")
    for step in range(20):
        weighted(a, float(step)).backward()

    assert [numbers.mean for numbers in tapped.history] == [15.0, 16.0, 17.0, 18.0, 19.0]
    assert tapped.passes == 20
    held = [found for found in reachable_from(tapped) if isinstance(found, torch.Tensor)]
    assert [tensor.numel() for tensor in held] == [8] * 5


def test_training_is_the_same_to_the_last_bit():
    def train(*, tapping_on):
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(inplace=True), nn.Dropout(), nn.Linear(8, 2))
        optimizer = torch.optim.Adam(model.parameters())
        if tapping_on:
            taps = [tap(parameter, name) for name, parameter in model.named_parameters()]
        for _ in range(3):
            optimizer.zero_grad()
            hidden = model[0](torch.randn(8, 4))
            if tapping_on:
                taps.append(tap(hidden, "hidden"))
            model[3](model[2](model[1](hidden))).square().sum().backward()
            optimizer.step()
        return [*model.parameters(), torch.get_rng_state()]

    plain, tapped = train(tapping_on=False), train(tapping_on=True)
    assert all(torch.equal(one, other) for one, other in zip(plain, tapped, strict=True))


def test_a_tapped_model_can_be_saved_and_copied_in_silence():
    model = nn.Linear(2, 2)
    tapped = tap(model.weight, "weight")
    a = leaf()
    tap(a, "a")
    torch.save(a, io.BytesIO())  # torch warns of a hook that is not saved
    torch.save(model, io.BytesIO())
    torch.save(model.state_dict(), io.BytesIO())
    other = copy.deepcopy(model)
    other(torch.ones(1, 2)).sum().backward()

    assert tapped.passes == 0


def test_a_compiled_model_passes_its_parameters_gradients():
    model = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
    torch._dynamo.utils.counters.clear()
    with tap(model[0].bias, "bias") as tapped:
        torch.compile(model, backend="eager")(torch.ones(1, 2)).sum().backward()
    torch._dynamo.reset()

    assert tapped.passes == 1
    assert torch._dynamo.utils.counters["graph_break"] == {}


def test_views_written_in_place_do_not_end_the_process():
    # torch 2.13 crashes when a hook is registered on such a view before its history is renewed.
    program = textwrap.dedent(
        """
        import torch
        from whygrad import tap
        from whygrad.interactive.tapping import Tap

        def view():
            return torch.ones(2, requires_grad=True).clone().view(2)

        x = view(); x[:].add_(1); zero = Tap("x", None); zero._attach(x); x.sum().backward()
        x = view(); x[:].add_(1); one = tap(x, "x"); x.sum().backward()
        x = view(); tap(x, "x"); x[:].add_(1); two = tap(x, "x"); x.sum().backward()
        x = view(); tap(x, "x"); x.add_(1); tap(x, "x"); x[:].mul_(2); tap(x, "x"); x.add_(1); x.sum().backward()
        x = view(); three = tap(x, "x"); x[:].add_(1); three.remove(); x.sum().backward()
        x = view(); base = x._base; four = tap(base, "base"); x[:].mul_(2); tap(x, "x", keep=True); x.sum().backward()
        print(zero.passes, one.passes, two.passes, three.passes, four.passes, x.grad.tolist())
        """
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)

    assert (ended.returncode, ended.stdout) == (0, "1 1 1 0 1 [1.0, 1.0]\n"), ended.stderr


# How it is shown


def test_the_text_shows_the_latest_pass():
    b = leaf(4) * 2
    tapped = tap(b, "b")
    loss = weighted(b, [1.0, -3.0, 0.0, math.nan])
    loss.backward(retain_graph=True)
    loss.backward()

    assert repr(tapped) == str(tapped)
    assert str(tapped) == (
        "tap `b`: 2 backward passes, the last:\n"
        "  gradient  mean -6.7e-01  std 2.1e+00  mean |g| 1.3e+00  L2 3.2e+00  max |g| 3.0e+00  zeros 25.0%  NaN/Inf 1"
    )


def test_the_text_of_an_edit_shows_both_sides():
    b = leaf() * 2
    with tap(b, "b", edit=lambda g: g * 2) as tapped:
        b.sum().backward()
    first, before, after = str(tapped).splitlines()

    assert first == "tap `b`: 1 backward pass, the last:"
    assert before.startswith("  before  mean 1.0e+00")
    assert after.startswith("  after   mean 2.0e+00")


def test_a_notebook_gets_escaped_html():
    tapped = tap(leaf(), "<i>")
    bundle = tapped._repr_mimebundle_()

    assert bundle["text/plain"] == str(tapped)
    assert "&lt;i&gt;" in bundle["text/html"]
    assert "<i>" not in bundle["text/html"]
