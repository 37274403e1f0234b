from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.stats.reference import FLOATS, assert_same, by_hand, noise, quiet_sparse
from whygrad.model import STATISTICS, Statistics
from whygrad.stats.kernel import tensor_statistics
from whygrad.stats.single import BLOCK, host_row, masked_row

ODD = (0.0, -0.0, 1.0, -1.0, 1e-25, -3e-20, 1e-45, 1e30, -2e38, math.nan, math.inf, -math.inf, 0.1, 65504.0)
SHAPES = st.lists(st.integers(0, 6), max_size=3).map(tuple)
LAYOUTS = {
    "contiguous": lambda t: t,
    "transposed": lambda t: t.movedim(0, -1) if t.dim() else t,
    "every other": lambda t: t[..., ::2] if t.dim() else t,
    "expanded": lambda t: t.unsqueeze(0).expand(3, *t.shape),
    "overlapping": lambda t: t.unfold(0, 1, 1) if t.dim() and t.size(0) else t,
    "sparse": lambda t: quiet_sparse(t.to_sparse) if t.dim() else t,
}


@st.composite
def tensors(draw):
    shape, dtype = draw(SHAPES), draw(st.sampled_from(FLOATS))
    count = math.prod(shape)
    numbers = draw(st.lists(st.sampled_from(ODD) | st.floats(width=32), min_size=count, max_size=count))
    # beyond the range of float64, squares overflow in any kernel
    return draw(st.sampled_from(list(LAYOUTS.values())))(torch.tensor(numbers, dtype=dtype).reshape(shape))


@given(tensors())
@settings(deadline=None, max_examples=300)
def test_any_small_tensor_has_the_statistics_counted_by_hand(tensor):
    assert_same(tensor_statistics(tensor), by_hand(tensor))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("count", [1, 128, 129, 4096, 4097, BLOCK, BLOCK + 1, 3 * BLOCK - 5])
def test_every_size_takes_a_path_with_the_same_numbers(count, dtype):
    values = noise(count, dtype=dtype)
    values[::3] = 0
    assert_same(tensor_statistics(values), by_hand(values))


@given(tensors())
@settings(deadline=None)
def test_the_host_kernel_and_the_reference_agree(tensor):
    values = tensor.to_dense().reshape(-1)
    assert_same(masked_row(values), by_hand(tensor))
    assert_same(torch.tensor(host_row(values), dtype=torch.float64), by_hand(tensor))


@pytest.mark.parametrize("wrong", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("count", [5, 300, 5_000, BLOCK + 9])
def test_one_element_that_is_not_finite_is_counted_and_left_out_of_the_sums(count, wrong):
    values = noise(count)
    values[count // 2] = wrong
    assert_same(tensor_statistics(values), by_hand(values))


@pytest.mark.parametrize("size", [1e-25, 1e-42, 1e30, 3e38])
@pytest.mark.parametrize("count", [10, 1_000, BLOCK])
def test_squares_neither_vanish_nor_overflow(count, size):
    row = tensor_statistics(torch.full((count,), size))
    element = torch.tensor(size).double().item()
    assert Statistics(*row.tolist()).l2 == pytest.approx(element * math.sqrt(count), rel=1e-6)


def test_tiny_elements_count_next_to_a_block_of_larger_ones():
    values = torch.cat((torch.full((BLOCK,), 1e-25), torch.full((BLOCK,), 1.0)))
    squares = tensor_statistics(values[:BLOCK].clone())[2].item()
    assert squares == pytest.approx(BLOCK * torch.tensor(1e-25).double().item() ** 2)
    assert_same(tensor_statistics(values), by_hand(values))


@pytest.mark.parametrize("count", [1_000, BLOCK])
def test_the_spread_of_a_nearly_constant_tensor_survives(count):
    values = 1 + 1e-5 * noise(count, seed=3)
    assert Statistics(*tensor_statistics(values).tolist()).std == pytest.approx(values.double().std().item(), rel=1e-3)


def test_a_constant_tensor_has_no_spread_to_speak_of():
    assert Statistics(*tensor_statistics(torch.full((BLOCK,), 0.1)).tolist()).std < 1e-8


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8])
@pytest.mark.parametrize("count", [7, 10_000])
def test_integers_count_as_numbers(count, dtype):
    values = torch.arange(count).remainder(100).to(dtype)
    assert_same(tensor_statistics(values), by_hand(values))


@pytest.mark.parametrize("count", [7, 10_000])
def test_bools_count_as_zeros_and_ones(count):
    values = torch.arange(count) % 3 == 0
    assert_same(tensor_statistics(values), by_hand(values))


@pytest.mark.parametrize("dtype", [torch.float8_e4m3fn, torch.float8_e5m2])
def test_float8_is_measured(dtype):
    values = noise(1_000).to(dtype)
    assert_same(tensor_statistics(values), by_hand(values))
    assert_same(masked_row(values), by_hand(values))


@pytest.mark.parametrize("shape", [(0,), (3, 0), (0, 4, 2)])
def test_an_empty_tensor_has_no_elements(shape):
    assert tensor_statistics(torch.empty(shape)).tolist() == [0.0] * 8
    assert masked_row(torch.empty(shape).reshape(-1)).tolist() == [0.0] * 8


def test_a_large_tensor_in_another_memory_format_is_read_without_a_copy(monkeypatch):
    images = noise(2, 8, 100, 100).to(memory_format=torch.channels_last)
    monkeypatch.setattr(torch.Tensor, "contiguous", lambda *_: pytest.fail("copied"))
    assert_same(tensor_statistics(images), by_hand(images))


def test_the_gradient_of_a_sum_is_one_number_read_once():
    gradient = torch.ones(()).expand(1 << 20, 1 << 20)  # four terabytes, if it were copied
    assert tensor_statistics(gradient).tolist() == [2.0**40, 2.0**40, 2.0**40, 2.0**40, 1.0, 0.0, 0.0, 0.0]


@pytest.mark.parametrize("layout", [torch.sparse_csr, torch.sparse_csc, torch.sparse_bsr, torch.sparse_bsc])
def test_compressed_sparse_tensors_count_as_dense_ones(layout):
    dense = torch.tensor([[1.0, 0.0, 0.0, 0.0], [0.0, math.nan, 0.0, 0.0]])
    blocks = (2, 2) if layout in {torch.sparse_bsr, torch.sparse_bsc} else None
    sparse = quiet_sparse(lambda: dense.to_sparse(layout=layout, blocksize=blocks))
    assert_same(tensor_statistics(sparse), by_hand(dense))


def test_entries_of_a_sparse_gradient_that_share_an_index_are_one_element():
    sparse = quiet_sparse(lambda: torch.sparse_coo_tensor([[0, 0, 2]], [[1.0, 2.0], [3.0, -2.0], [0.0, 5.0]], (9, 2)))
    assert_same(tensor_statistics(sparse), Statistics(18, 9, 41, 9, 5, 16, 0, 0))


def test_a_huge_sparse_gradient_is_not_made_dense():
    sparse = quiet_sparse(lambda: torch.sparse_coo_tensor([[3]], [2.0], (1 << 50,)))
    assert tensor_statistics(sparse).tolist() == [2.0**50, 2.0, 4.0, 2.0, 2.0, 2.0**50 - 1, 0.0, 0.0]


@given(tensors(), tensors())
@settings(deadline=None)
def test_statistics_add_up_over_tensors(one, other):
    flat = [tensor.to_dense().double().reshape(-1) for tensor in (one, other)]
    together = Statistics(*tensor_statistics(torch.cat(flat)).tolist())
    total = Statistics(*tensor_statistics(one).tolist()) + Statistics(*tensor_statistics(other).tolist())
    assert_same(torch.tensor([getattr(total, name) for name in STATISTICS], dtype=torch.float64), together)


def test_the_reference_never_looks_at_the_device():
    values = torch.empty(1_000, device="meta")  # holds no values: whoever reads one raises
    assert masked_row(values).shape == (8,)
    assert masked_row(values.half()).dtype is torch.float64
