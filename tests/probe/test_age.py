"""What the collector tells about the age of objects."""

from __future__ import annotations

import gc

import torch

from whygrad.probe.age import Moment


def test_a_tensor_made_before_and_one_made_after():
    before = torch.ones(1)
    moment = Moment()
    after = torch.ones(1)

    assert moment.is_before(before) is False
    assert moment.is_before(after) is True


def test_a_tensor_that_the_collector_has_looked_over_is_older_than_a_new_moment():
    before = torch.ones(1)
    gc.collect(0)

    assert Moment().is_before(before) is False


def test_a_moment_that_the_collector_has_looked_over_is_before_a_new_tensor():
    moment = Moment()
    gc.collect(0)

    assert moment.is_before(torch.ones(1)) is True


def test_once_both_are_old_nothing_is_claimed():
    tensors = [torch.ones(1)]
    moment = Moment()
    tensors.append(torch.ones(1))
    gc.collect(0)

    assert [moment.is_before(tensor) for tensor in tensors] == [None, None]


def test_a_build_that_keeps_no_generations_claims_nothing(monkeypatch):
    monkeypatch.setattr("whygrad.probe.age._GENERATIONS", False)
    moment = Moment()

    assert moment.is_before(torch.ones(1)) is None
