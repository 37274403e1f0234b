from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.stats.reference import FLOATS, noise, quiet_sparse
from whygrad.stats.histogram import _count_elsewhere, size_histogram


def bins_by_hand(tensor):
    counts = [0] * 32
    for number in tensor.to_dense().to(torch.float64).flatten().tolist():
        if number and math.isfinite(number):
            exponent = math.frexp(number)[1] - 1
            counts[min(31, max(0, (exponent + 48) // 2))] += 1
    return counts


def frexp_bins(tensor):
    _, exponent = torch.frexp(tensor[tensor.isfinite() & (tensor != 0)])
    return torch.bincount(((exponent + 47) // 2).clamp(0, 31), minlength=32).tolist()


@given(st.lists(st.floats(width=32), max_size=40), st.sampled_from(FLOATS))
@settings(deadline=None)
def test_every_element_lands_in_the_bin_counted_by_hand(numbers, dtype):
    tensor = torch.tensor(numbers, dtype=dtype)
    assert size_histogram(tensor).tolist() == bins_by_hand(tensor)


@given(st.lists(st.floats(), max_size=40))
@settings(deadline=None)
def test_float64_keeps_its_wider_exponents(numbers):
    tensor = torch.tensor(numbers, dtype=torch.float64)
    assert size_histogram(tensor).tolist() == bins_by_hand(tensor)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_each_power_of_two_and_its_neighbours_are_on_the_right_side(dtype):
    powers = torch.pow(2.0, torch.arange(-60, 25, dtype=dtype))
    tensor = torch.cat((powers, torch.nextafter(powers, powers * 0), torch.nextafter(powers, powers * 4)))
    assert size_histogram(tensor).tolist() == bins_by_hand(tensor) == frexp_bins(tensor)


def test_a_large_tensor_is_counted_whole_by_default():
    tensor = noise(300_001)
    assert size_histogram(tensor).tolist() == frexp_bins(tensor)


def test_subnormal_numbers_are_counted_and_zeros_are_not():
    tensor = torch.tensor([1e-45, 1e-40, 0.0, -0.0, math.nan, math.inf])
    assert size_histogram(tensor).tolist() == [2] + [0] * 31


def test_an_empty_tensor_has_an_empty_histogram():
    assert size_histogram(torch.empty(0, 3)).tolist() == [0] * 32


def test_counts_are_int32_of_32_bins():
    histogram = size_histogram(noise(10))
    assert (histogram.dtype, histogram.shape) == (torch.int32, (32,))


def test_integers_and_sparse_values_are_numbers_too():
    assert size_histogram(torch.tensor([0, 1, 3, -4])).tolist() == bins_by_hand(torch.tensor([1.0, 3.0, -4.0]))
    assert size_histogram(quiet_sparse(torch.eye(3).to_sparse)).sum() == 3


def test_an_expanded_tensor_counts_each_repetition():
    assert size_histogram(torch.ones(1).expand(1_000))[24] == 1_000


def test_a_limit_bounds_what_is_looked_at():
    assert size_histogram(noise(300_001), 65_536).sum() == 65_536
    assert size_histogram(noise(1_000), 65_536).sum() == 1_000


def test_a_sample_has_the_shares_of_the_whole():
    tensor = noise(1 << 18) * torch.logspace(-6, 0, 1 << 18)
    sampled, whole = size_histogram(tensor, 65_536) / 65_536, size_histogram(tensor) / (1 << 18)
    torch.testing.assert_close(sampled, whole, rtol=0, atol=0.01)


@given(st.lists(st.floats(width=32), max_size=40), st.sampled_from((torch.float32, torch.float64)))
@settings(deadline=None, max_examples=25)
def test_other_devices_count_the_same_without_a_look_at_the_values(numbers, dtype):
    sizes = torch.tensor(numbers, dtype=dtype).abs()
    assert _count_elsewhere(sizes).tolist() == bins_by_hand(sizes)
    assert _count_elsewhere(sizes.to("meta")).shape == (32,)
