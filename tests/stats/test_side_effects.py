"""What measuring must not do to the program."""

from __future__ import annotations

import warnings

import pytest
import torch
from torch._subclasses import FakeTensorMode
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from tests.stats.reference import noise, quiet_sparse
from whygrad.stats.histogram import size_histogram
from whygrad.stats.kernel import (
    many_statistics,
    many_updates,
    rows_with_gradient,
    sample_view,
    tensor_statistics,
    update_statistics,
)

KERNELS = {
    "tensor_statistics": tensor_statistics,
    "many_statistics": lambda t: many_statistics([t] * 20),
    "update_statistics": lambda t: update_statistics(t, t),
    "many_updates": lambda t: many_updates([t], [t]),
    "size_histogram": lambda t: size_histogram(t, 1_000),
    "sample_view": lambda t: sample_view(t, 1_000),
    "rows_with_gradient": rows_with_gradient,
}
every_kernel = pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
every_size = pytest.mark.parametrize("shape", [(3, 4), (30, 40), (300, 400)])


@every_kernel
@every_size
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_the_tensor_keeps_its_bits_and_its_version(kernel, shape, dtype):
    tensor = noise(*shape, dtype=dtype)
    before, version = tensor.clone(), tensor._version
    kernel(tensor)
    assert torch.equal(tensor, before)
    assert tensor._version == version


@every_kernel
@every_size
def test_no_random_number_is_drawn(kernel, shape):
    tensor, state = noise(*shape), torch.get_rng_state()
    kernel(tensor)
    assert torch.equal(torch.get_rng_state(), state)


@every_kernel
@every_size
@pytest.mark.parametrize("odd", [float("nan"), 1e-30, 1.0])
def test_no_graph_is_kept_and_no_warning_given_for_tensors_that_require_grad(kernel, shape, odd):
    leaf = torch.full(shape, odd, requires_grad=True)
    for tensor in (leaf, leaf * 2, torch.nn.Parameter(torch.full(shape, odd))):
        result = kernel(tensor)
        assert not result.requires_grad
        assert result.grad_fn is None
    assert leaf.grad is None


@every_kernel
def test_a_hook_under_create_graph_leaves_the_graph_alone(kernel):
    x = torch.ones(200, 3, requires_grad=True)
    y = x**3
    y.register_hook(lambda gradient: (kernel(gradient), None)[1])
    (gradient,) = torch.autograd.grad(y.sum(), x, create_graph=True)
    gradient.sum().backward()
    assert torch.equal(x.grad, torch.full((200, 3), 6.0))


@every_kernel
@every_size
def test_inference_tensors_are_measured_inside_and_outside_inference_mode(kernel, shape):
    with torch.inference_mode():
        tensor = noise(*shape)
        inside = kernel(tensor)
    assert torch.equal(kernel(tensor), inside)


@every_kernel
@every_size
def test_autocast_changes_nothing(kernel, shape):
    tensor = noise(*shape)
    plain = kernel(tensor)
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.equal(kernel(tensor), plain)


@every_kernel
@every_size
def test_defaults_that_the_program_set_do_not_matter(kernel, shape):
    tensor = noise(*shape)
    plain = kernel(tensor)
    torch.set_default_dtype(torch.bfloat16)
    torch.use_deterministic_algorithms(mode=True)
    torch.set_default_device("meta")
    try:
        assert torch.equal(kernel(tensor), plain)
    finally:
        torch.set_default_device(None)
        torch.use_deterministic_algorithms(mode=False)
        torch.set_default_dtype(torch.float32)


class Spy(TorchFunctionMode):
    def __init__(self):
        super().__init__()
        self.calls = []

    def __torch_function__(self, function, types, args=(), kwargs=None):
        self.calls.append(function)
        return function(*args, **(kwargs or {}))


class DispatchSpy(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.calls = []

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        self.calls.append(function)
        return function(*args, **(kwargs or {}))


@every_kernel
@every_size
def test_no_mode_sees_the_kernels(kernel, shape):
    tensor = noise(*shape)
    with Spy() as spy, DispatchSpy() as dispatch_spy:
        kernel(tensor)
    assert spy.calls == dispatch_spy.calls == []


@every_kernel
def test_real_tensors_are_measured_while_the_program_makes_fake_ones(kernel):
    tensor = noise(30, 40)
    plain = kernel(tensor)
    with FakeTensorMode():
        measured = kernel(tensor)
    assert torch.equal(measured, plain)


@every_kernel
@pytest.mark.parametrize("layout", [torch.sparse_coo, torch.sparse_csr])
def test_sparse_gradients_give_no_warning_even_where_torch_warns_each_time(kernel, layout):
    sparse = quiet_sparse(lambda: noise(30, 40).relu().to_sparse(layout=layout))
    torch.set_warn_always(True)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            kernel(sparse)
    finally:
        torch.set_warn_always(False)
