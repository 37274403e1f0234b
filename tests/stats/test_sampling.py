from __future__ import annotations

import pytest
import torch

from tests.stats.reference import noise, quiet_sparse
from whygrad.stats.sampling import sample_view


def test_a_small_tensor_is_a_view_of_all_its_elements():
    tensor = torch.arange(12.0).view(3, 4)
    sample = sample_view(tensor)
    assert sample.data_ptr() == tensor.data_ptr()
    assert sample.tolist() == list(range(12))


def test_a_small_tensor_in_another_memory_order_is_a_view_too():
    tensor = torch.arange(12.0).view(3, 4).T
    assert sample_view(tensor).data_ptr() == tensor.data_ptr()


@pytest.mark.parametrize("count", [65_537, 100_000, 1_000_003])
def test_a_large_tensor_gives_distinct_elements_up_to_the_limit(count):
    sample = sample_view(torch.arange(count))
    assert sample.numel() == 65_536
    assert sample.unique().numel() == 65_536


@pytest.mark.parametrize("shape", [(1024, 1024), (4096, 300), (100, 9_999), (64, 64, 3, 3, 16)])
def test_the_sample_is_spread_over_all_rows_and_columns(shape):
    tensor = torch.arange(torch.Size(shape).numel()).view(shape[0], -1)
    sample = sample_view(tensor, 16_384)
    rows = torch.bincount(sample // tensor.size(1) * 8 // tensor.size(0), minlength=8)
    columns = torch.bincount(sample % tensor.size(1) * 8 // tensor.size(1), minlength=8)
    assert rows.min() > 0.8 * 16_384 / 8
    assert columns.min() > 0.6 * 16_384 / 8


def test_the_same_elements_are_taken_each_time():
    before, after = noise(500, 500), noise(500, 500) + 1
    torch.testing.assert_close(sample_view(after) - sample_view(before), torch.ones(65_536))


def test_a_large_sample_holds_no_memory_of_its_tensor():
    tensor = noise(500, 500)
    assert sample_view(tensor).untyped_storage().size() == 65_536 * 4


def test_a_tiny_limit_is_kept():
    assert sample_view(torch.arange(1_000), 10).tolist() == list(range(10))


def test_a_sparse_tensor_gives_what_it_stores():
    assert sample_view(quiet_sparse(torch.eye(3).to_sparse)).tolist() == [1.0, 1.0, 1.0]


def test_a_parameter_gives_a_sample_outside_the_graph():
    assert not sample_view(torch.nn.Parameter(torch.ones(3))).requires_grad
