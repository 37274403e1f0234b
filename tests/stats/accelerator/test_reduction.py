from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.stats.accelerator.fake import accelerators
from tests.stats.reference import FLOATS, assert_same, by_hand, noise, quiet_sparse
from whygrad.stats.accelerator import reduction
from whygrad.stats.fused import SAMPLED_ABOVE
from whygrad.stats.histogram import size_histogram
from whygrad.stats.kernel import tensor_statistics

SPECIAL = (0.0, -0.0, 1e-25, 1e-45, 1e30, math.nan, math.inf, -math.inf)


def measured(tensors):
    device = accelerators()[0]
    return device.begin(tensors, histograms=True).read()


def assert_right(tensors):
    found = measured(tensors)
    assert found.refused == {}
    for tensor, row, counts in zip(tensors, found.matrix, found.histograms, strict=True):
        assert_same(row, by_hand(tensor))
        assert torch.equal(counts, size_histogram(tensor, SAMPLED_ABOVE))


@st.composite
def lists_of_tensors(draw):
    counts = draw(st.lists(st.integers(0, 2000), min_size=1, max_size=12))
    tensors = []
    for seed, count in enumerate(counts):
        tensor = noise(count, dtype=draw(st.sampled_from(FLOATS)), seed=seed)
        for value in draw(st.lists(st.sampled_from(SPECIAL), max_size=3)) if count else []:
            tensor[draw(st.integers(0, count - 1))] = value
        tensors.append(tensor)
    return tensors


@given(lists_of_tensors())
@settings(deadline=None, max_examples=30)
def test_every_number_of_every_tensor_is_that_of_the_reference(tensors):
    assert_right(tensors)


def test_a_mix_of_every_kind_of_tensor_is_measured_in_one_call():
    assert_right([
        noise(300, 400).T,
        noise(6, 6).T[::2],
        torch.ones(()),
        torch.empty(0),
        torch.ones(1).expand(100_000),
        noise(3, 1, seed=1).expand(3, 50),
        torch.arange(9),
        torch.tensor([True, False]),
        torch.tensor([2**40, 3]),
        noise(40).to(torch.float8_e5m2),
        quiet_sparse(lambda: torch.eye(4).to_sparse()),
        noise(500, 500, dtype=torch.bfloat16),
    ])  # fmt: skip


@pytest.mark.parametrize("size", [1e-25, 1e-45, 1e30, 3e38])
def test_squares_neither_vanish_nor_overflow(size):
    assert_right([torch.full((5000,), size), noise(10)])


def test_a_spread_that_is_small_beside_the_mean_is_kept():
    tensor = noise(100_000) + 10_000
    _, total, squares, *_ = measured([tensor]).matrix[0].tolist()
    variance = squares / 100_000 - (total / 100_000) ** 2
    assert variance == pytest.approx(tensor.double().var(correction=0).item(), rel=1e-4)


def test_counts_beyond_the_precision_of_float32_are_exact():
    tensor = torch.ones(2**24 + 3, dtype=torch.bfloat16)
    tensor[:: 2**20] = 0
    count, total, *_, zeros, _, _ = measured([tensor]).matrix[0].tolist()
    assert (count, zeros, total) == (2**24 + 3, 17, 2**24 + 3 - 17)


def test_tensors_are_cut_and_put_together_again(monkeypatch):
    monkeypatch.setattr(reduction, "MOST", 1000)
    monkeypatch.setattr(reduction, "LEAST", 100)
    tensors = [noise(count, seed=count) for count in (3, 999, 1000, 1001, 4500, 0, 7, 2500)]
    tensors[4][::50] = math.nan
    assert_right(tensors)


@pytest.mark.parametrize("counts", [[1], [5, 5, 5], [100], [101, 3], [0, 0], [250, 1, 99], [7] * 40])
def test_no_buffer_holds_more_than_the_largest_tensor_or_the_least_size(monkeypatch, counts):
    monkeypatch.setattr(reduction, "MOST", 200)
    monkeypatch.setattr(reduction, "LEAST", 50)
    parts = [torch.empty(count) for count in counts]
    batches = list(reduction.batches(parts))
    room = min(200, max(50, *counts, 0))
    assert all(0 < sum(part.numel() for _, part in batch) <= room for batch in batches)
    assert all(part.numel() for batch in batches for _, part in batch)
    found = [0] * len(parts)
    for batch in batches:
        for index, part in batch:
            found[index] += part.numel()
    assert found == counts


def test_nothing_is_written_to_the_tensors():
    tensors = [noise(500, seed=seed) for seed in range(3)] + [noise(100_000)]
    tensors[0][3] = math.nan
    before, versions = [t.clone() for t in tensors], [t._version for t in tensors]
    measured(tensors)
    assert all(torch.equal(a.nan_to_num(7.0), b.nan_to_num(7.0)) for a, b in zip(tensors, before, strict=True))
    assert versions == [t._version for t in tensors]


def test_the_numbers_are_those_of_the_cpu():
    tensors = [noise(100, 30, seed=seed, dtype=dtype) for seed, dtype in enumerate(FLOATS)]
    here = torch.stack([tensor_statistics(tensor) for tensor in tensors])
    assert torch.allclose(measured(tensors).matrix, here, rtol=1e-6, atol=1e-3)
