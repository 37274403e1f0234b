from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.stats.reference import FLOATS, quiet_sparse
from whygrad.stats.kernel import rows_with_gradient

NUMBERS = st.sampled_from((0.0, -0.0, 0.0, 1.0, -1e-45, math.nan, -math.inf, 5.0))


@given(st.lists(st.lists(NUMBERS, min_size=6, max_size=6), min_size=1, max_size=5), st.sampled_from(FLOATS))
@settings(deadline=None)
def test_a_row_has_gradient_where_any_element_is_not_zero(rows, dtype):
    gradient = torch.tensor(rows, dtype=dtype)
    expected = [any(number != 0 for number in row) for row in gradient.tolist()]
    shapes = (gradient, gradient.view(-1, 2, 3), gradient.T.contiguous().T)
    assert [rows_with_gradient(g).tolist() for g in shapes] == [expected] * 3
    assert rows_with_gradient(quiet_sparse(gradient.to_sparse)).tolist() == expected
    assert rows_with_gradient(quiet_sparse(lambda: gradient.to_sparse(1))).tolist() == expected


@pytest.mark.parametrize("layout", [torch.sparse_csr, torch.sparse_csc])
def test_compressed_sparse_rows(layout):
    sparse = quiet_sparse(lambda: torch.tensor([[0.0, 1.0], [0.0, 0.0], [2.0, 0.0]]).to_sparse(layout=layout))
    assert rows_with_gradient(sparse).tolist() == [True, False, True]


def test_sparse_entries_that_cancel_are_silent():
    sparse = quiet_sparse(lambda: torch.sparse_coo_tensor([[1, 1]], [[1.0], [-1.0]], (3, 1)))
    assert rows_with_gradient(sparse).tolist() == [False, False, False]


def test_a_vector_has_one_element_per_row():
    assert rows_with_gradient(torch.tensor([0.0, 2.0, math.nan])).tolist() == [False, True, True]


def test_a_scalar_is_one_row():
    assert rows_with_gradient(torch.tensor(3.0)).tolist() == [True]


def test_rows_without_elements_are_silent():
    assert rows_with_gradient(torch.empty(3, 0)).tolist() == [False] * 3
    assert rows_with_gradient(torch.empty(0, 3)).tolist() == []


def test_the_host_does_not_wait_for_the_device():
    from whygrad.stats.silence import _dense_rows

    assert _dense_rows(torch.empty(3, 4, device="meta")).shape == (3,)
