"""Rows that are measured one after the other."""

from __future__ import annotations

from dataclasses import astuple
from threading import Thread

import pytest
import torch

from tests.stats.reference import by_hand
from whygrad.stats import library
from whygrad.stats.rows import Rows


@pytest.fixture(params=["compiled", "torch"])
def kernel(request, monkeypatch):
    if request.param == "torch":
        monkeypatch.setattr("whygrad.stats.rows.library", lambda: None)
    elif library.library() is None:
        pytest.skip("no compiled kernel here")


@pytest.mark.usefixtures("kernel")
def test_rows_are_those_of_the_tensors_in_their_order():
    tensors = [torch.randn(size) for size in (3, 70_000, 1)] + [torch.randn(40, 6).t(), torch.zeros(5), torch.empty(0)]
    rows = Rows()
    with torch._C.DisableTorchFunction():
        assert [rows.add(10 + index, tensor) for index, tensor in enumerate(tensors)] == list(range(len(tensors)))
    assert rows.ids == [10 + index for index in range(len(tensors))]
    expected = torch.tensor([astuple(by_hand(tensor)) for tensor in tensors], dtype=torch.float64)
    torch.testing.assert_close(whole(rows), expected, rtol=1e-6, atol=1e-3)
    torch.testing.assert_close(rows.row(3), expected[3], rtol=1e-6, atol=1e-3)


@pytest.mark.usefixtures("kernel")
def test_a_row_is_what_the_tensor_was_when_it_was_added():
    tensor, rows = torch.ones(4), Rows()
    rows.add(0, tensor)
    tensor.zero_()
    assert whole(rows)[0, 1] == 4


def whole(rows):
    matrix, elsewhere = rows.parts()
    for index, row in elsewhere.items():
        matrix[index] = row
    return matrix


def test_there_may_be_more_rows_than_were_expected():
    rows = Rows(expected=2)
    for number in range(50):
        rows.add(number, torch.full((2,), float(number)))
    assert whole(rows)[:, 1].tolist() == [2.0 * number for number in range(50)]


def test_what_cannot_be_measured_gets_no_row():
    rows = Rows()
    assert rows.add(0, torch.empty(3, device="meta")) is None
    assert not rows.ids


def test_rows_that_were_measured_before_stand_among_the_others():
    rows = Rows()
    rows.add(0, torch.ones(2))
    rows.put(1, torch.arange(8, dtype=torch.float64))
    rows.add(2, torch.ones(3))
    assert whole(rows)[1].tolist() == list(range(8))
    assert whole(rows)[:, 0].tolist() == [2, 0, 3]


def test_threads_that_add_side_by_side_take_no_row_from_each_other():
    rows = Rows(expected=4)
    large = torch.ones(100_000)  # measured while other threads run

    def add(number):
        for _ in range(100):
            rows.add(number, large[: 70_000 + number])

    threads = [Thread(target=add, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(rows.ids) == sorted(list(range(4)) * 100)
    assert whole(rows)[:, 0].tolist() == [70_000 + number for number in rows.ids]
