from __future__ import annotations

import pytest
import torch
from torch._subclasses import FakeTensorMode

from tests.stats.reference import by_hand, noise, quiet_sparse
from whygrad.stats.histogram import size_histogram
from whygrad.stats.kernel import (
    is_supported,
    many_statistics,
    refusal,
    rows_with_gradient,
    sample_view,
    tensor_statistics,
    update_statistics,
)


class Wrapper(torch.Tensor):
    @classmethod
    def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
        raise AssertionError(function)


class Renamed(torch.Tensor):
    """A subclass that only changes Python, as many libraries have."""


class Sharded(torch.Tensor):
    """What a DTensor looks like from here."""

    _local_tensor: torch.Tensor

    @classmethod
    def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
        raise AssertionError(function)


def freed():
    tensor = torch.ones(4)
    tensor.untyped_storage().resize_(0)
    return tensor


def fake():
    with FakeTensorMode():
        return torch.empty(3)


def quantized():
    return quiet_sparse(lambda: torch.quantize_per_tensor(torch.ones(3), 0.1, 0, torch.qint8))


REFUSED = {
    "complex64": (lambda: torch.ones(3, dtype=torch.complex64), "complex64 tensors are not measured"),
    "complex128": (lambda: torch.ones(3, dtype=torch.complex128), "complex128 tensors are not measured"),
    "qint8": (quantized, "qint8 tensors are not measured"),
    "meta": (lambda: torch.empty(3, device="meta"), "meta tensors are not measured"),
    "fake": (fake, "FakeTensor tensors are not measured"),
    "nested": (
        lambda: torch.nested.nested_tensor([torch.ones(2)], layout=torch.jagged),
        "nested tensors are not measured",
    ),
    "mkldnn": (lambda: torch.ones(3).to_mkldnn(), "tensors of layout _mkldnn are not measured"),
    "wrapper": (lambda: torch.ones(3).as_subclass(Wrapper), "Wrapper tensors are not measured"),
    "freed": (freed, "tensors whose storage was freed are not measured"),
}


@pytest.mark.parametrize(("make", "why"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_measured_is_refused_with_a_sentence(make, why):
    tensor = make()
    assert refusal(tensor) == why
    assert not is_supported(tensor)


@pytest.mark.parametrize("make", [make for make, _ in REFUSED.values()], ids=REFUSED)
def test_no_kernel_raises_for_what_it_refuses_or_claims_to_have_looked(make):
    tensor = make()
    assert tensor_statistics(tensor).tolist() == [0.0] * 8
    assert many_statistics([tensor, torch.ones(2)])[:, 0].tolist() == [0.0, 2.0]
    assert update_statistics(tensor, tensor).tolist() == [0.0] * 8
    assert size_histogram(tensor).sum() == 0
    assert sample_view(tensor).numel() == 0
    assert rows_with_gradient(tensor).numel() == 0


def test_a_gradient_inside_vmap_is_refused():
    seen = []
    torch.func.vmap(lambda x: (seen.append((refusal(x), tensor_statistics(x).sum())), x)[1])(torch.ones(2, 3))
    assert seen == [("tensors inside torch.func transforms are not measured", 0.0)]


@pytest.mark.parametrize(
    "tensor",
    [
        torch.ones(3),
        torch.nn.Parameter(torch.ones(3)),
        torch.ones(()),
        torch.empty(0, 3),
        torch.ones(3).as_subclass(Renamed),
        torch.ones(3, dtype=torch.bool),
        torch.ones(1).expand(4),
    ],
    ids=["plain", "parameter", "scalar", "empty", "subclass", "bool", "expanded"],
)
def test_what_can_be_measured_is_not_refused(tensor):
    assert refusal(tensor) is None
    assert tensor_statistics(tensor)[0] == tensor.numel()


def test_a_distributed_tensor_counts_as_its_local_part():
    local = noise(5, 2)
    sharded = torch.empty(50, 2).as_subclass(Sharded)
    sharded._local_tensor = local
    assert is_supported(sharded)
    assert tensor_statistics(sharded)[0] == 10
    assert many_statistics([sharded])[0, 4] == by_hand(local).max_abs
    assert update_statistics(sharded, sharded)[5] == 10
    assert sample_view(sharded).numel() == 10
    assert rows_with_gradient(sharded).tolist() == [True] * 5
    assert size_histogram(sharded).sum() == 10
