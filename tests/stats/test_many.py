from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.stats.reference import FLOATS, assert_same, by_hand, noise, quiet_sparse
from whygrad.stats.batch import FEW, ROW, SMALL, batch_statistics
from whygrad.stats.kernel import many_statistics, many_updates, update_statistics
from whygrad.stats.support import elements, local_tensor

SPECIAL = (0.0, -0.0, 1e-25, 1e-45, 1e30, math.nan, math.inf, -math.inf)


@st.composite
def lists_of_tensors(draw):
    counts = draw(st.lists(st.integers(0, 3 * ROW) | st.just(SMALL), min_size=1, max_size=2 * FEW))
    tensors = []
    for seed, count in enumerate(counts):
        tensor = noise(count, dtype=draw(st.sampled_from(FLOATS[:2] + FLOATS)), seed=seed)
        if count and draw(st.booleans()):
            tensor[draw(st.integers(0, count - 1))] = draw(st.sampled_from(SPECIAL))
        tensors.append(tensor)
    return tensors


@given(lists_of_tensors())
@settings(deadline=None, max_examples=40)
def test_rows_stand_in_the_order_of_the_tensors_and_equal_those_of_single_ones(tensors):
    matrix = many_statistics(tensors)
    assert matrix.shape == (len(tensors), 8)
    for row, tensor in zip(matrix, tensors, strict=True):
        assert_same(row, by_hand(tensor))


def test_a_mix_of_everything_is_measured_in_one_call():
    tensors = [
        *(noise(3, 4, seed=seed) for seed in range(30)),
        *(noise(100, 100, seed=seed) for seed in range(20)),
        noise(300, 400).T,
        torch.ones(()),
        torch.empty(0),
        torch.full((20_000,), 1e-25),
        torch.ones(5_000),
        noise(40, dtype=torch.bfloat16),
        quiet_sparse(lambda: torch.eye(4).to_sparse()),
        torch.arange(9),
        torch.ones(1).expand(100_000),
        noise(6, 6).T[::2],
    ]
    for row, tensor in zip(many_statistics(tensors), tensors, strict=True):
        assert_same(row, by_hand(tensor))


def test_tensors_of_every_size_fill_rows_of_a_batch_to_the_brim():
    tensors = [noise(count, seed=count) for count in (*range(1, 30), ROW - 1, ROW, ROW + 1, 2 * ROW, 0, 1)]
    for row, tensor in zip(batch_statistics(tensors), tensors, strict=True):
        assert_same(row, by_hand(tensor))


def test_a_batch_counts_a_full_row_of_nonzero_elements():
    assert batch_statistics([torch.ones(ROW)] * 3)[:, 5].tolist() == [0.0] * 3


@pytest.mark.parametrize("count", [100, SMALL, SMALL + 1])
def test_squares_of_many_tensors_neither_vanish_nor_overflow(count):
    tensors = [torch.full((count,), size) for size in (1e-25, 1e30, 0.1)] * FEW
    for row, tensor in zip(many_statistics(tensors), tensors, strict=True):
        assert_same(row, by_hand(tensor))


def test_no_tensors_give_no_rows():
    assert many_statistics([]).shape == (0, 8)


def test_the_matrix_is_on_the_cpu_in_float64():
    matrix = many_statistics([noise(3, dtype=torch.float16)])
    assert (matrix.dtype, matrix.device.type) == (torch.float64, "cpu")


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("shape", [(5,), (30, 40), (300, 300)])
def test_an_update_is_after_minus_before(shape, dtype):
    before = noise(*shape, dtype=dtype)
    after = before + noise(*shape, dtype=dtype, seed=1) * 0.01
    after.view(-1)[::2] = before.view(-1)[::2]
    assert_same(update_statistics(before, after), by_hand(after.double() - before.double()))


def test_elements_that_did_not_change_are_the_zeros_of_an_update():
    before = torch.tensor([0.0, -0.0, 1.0, 1e-45, 3.0])
    after = torch.tensor([-0.0, 0.0, 1.0, 0.0, 4.0])
    assert update_statistics(before, after)[5] == 3


def test_the_smallest_change_of_a_half_precision_weight_is_seen():
    before = torch.full((10_000,), 1.0, dtype=torch.bfloat16)
    after = before.clone()
    after[0] = 1.0078125
    row = update_statistics(before, after)
    assert (row[5].item(), row[4].item()) == (9_999, 0.0078125)


@pytest.mark.parametrize("other", [torch.ones(4), torch.ones(3, 1), quiet_sparse(lambda: torch.ones(3).to_sparse())])
def test_tensors_that_do_not_fit_each_other_give_no_update(other):
    assert update_statistics(torch.ones(3), other).tolist() == [0.0] * 8


def test_many_updates_equal_single_ones():
    before = [noise(50, seed=seed) for seed in range(15)] + [torch.ones(2)]
    after = [tensor * 1.5 for tensor in before[:-1]] + [torch.ones(3)]
    single = torch.stack([update_statistics(old, new) for old, new in zip(before, after, strict=True)])
    torch.testing.assert_close(many_updates(before, after), single)


def test_elements_of_an_expanded_tensor_are_read_once():
    part = elements(local_tensor(torch.arange(3.0).view(3, 1).expand(3, 1_000)))
    assert (part.values.numel(), part.repeats) == (3, 1_000)
