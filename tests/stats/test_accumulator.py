from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from whygrad.model import Role, Statistics, Total
from whygrad.stats.accumulator import RunningTotals, merge_rows
from whygrad.stats.kernel import many_statistics

VALUES = st.sampled_from((0.0, 1.0, -2.0, math.nan, math.inf))
TENSORS = st.lists(VALUES, max_size=4).map(lambda numbers: torch.tensor(numbers, dtype=torch.float64))
STEPS = st.lists(st.dictionaries(st.integers(0, 9), TENSORS, max_size=5), max_size=6)


def total_by_hand(steps, tensor_id):
    seen = {
        step: tensors[tensor_id] for step, tensors in enumerate(steps) if tensors.get(tensor_id, torch.empty(0)).numel()
    }
    nonfinite = [step for step, tensor in seen.items() if not tensor.isfinite().all()]
    rows = [Statistics(*row) for row in many_statistics(list(seen.values())).tolist()]
    return Total(
        Role.GRADIENT,
        tensor_id,
        steps=len(seen),
        zero_steps=sum(bool((tensor == 0).all()) for tensor in seen.values()),
        nonfinite_steps=len(nonfinite),
        first_nonfinite_step=min(nonfinite, default=None),
        statistics=sum(rows, Statistics()),
    )


@given(STEPS)
@settings(deadline=None)
def test_totals_equal_those_added_by_hand(steps):
    totals = RunningTotals()
    for step, tensors in enumerate(steps):
        totals.add(Role.GRADIENT, step, list(tensors), many_statistics(list(tensors.values())))
    ids = sorted({id_ for tensors in steps for id_, tensor in tensors.items() if tensor.numel()})
    assert totals.totals() == [total_by_hand(steps, id_) for id_ in ids]


def test_roles_are_kept_apart():
    totals = RunningTotals()
    row = many_statistics([torch.ones(2)])
    totals.add(Role.GRADIENT, 0, [3], row)
    totals.add(Role.OUTPUT, 0, [3], row * 2)
    assert [(t.role, t.id, t.statistics.count) for t in totals.totals()] == [(Role.GRADIENT, 3, 2), (Role.OUTPUT, 3, 4)]


def test_an_id_that_comes_later_starts_from_nothing():
    totals = RunningTotals()
    totals.add(Role.WEIGHT, 0, [0], many_statistics([torch.ones(1)]))
    totals.add(Role.WEIGHT, 7, [1_000, 2], many_statistics([torch.tensor([math.nan]), torch.zeros(3)]))
    by_id = {total.id: total for total in totals.totals()}
    assert sorted(by_id) == [0, 2, 1_000]
    assert (by_id[1_000].steps, by_id[1_000].first_nonfinite_step) == (1, 7)
    assert (by_id[2].zero_steps, by_id[2].first_nonfinite_step) == (1, None)


def test_the_first_step_that_was_not_finite_stays_the_first():
    totals = RunningTotals()
    for step, value in enumerate((1.0, math.inf, 1.0, math.nan)):
        totals.add(Role.GRADIENT, step, [0], many_statistics([torch.tensor([value])]))
    (total,) = totals.totals()
    assert (total.nonfinite_steps, total.first_nonfinite_step) == (2, 1)


def test_the_largest_element_of_all_steps_is_kept():
    totals = RunningTotals()
    for step, value in enumerate((1.0, -5.0, 2.0)):
        totals.add(Role.GRADIENT, step, [0], many_statistics([torch.tensor([value])]))
    assert totals.totals()[0].statistics.max_abs == 5


def test_a_row_of_nothing_is_not_counted_as_seen():
    totals = RunningTotals()
    totals.add(Role.GRADIENT, 0, [0], torch.zeros(1, 8, dtype=torch.float64))
    totals.add(Role.GRADIENT, 1, [], torch.zeros(0, 8, dtype=torch.float64))
    assert totals.totals() == []


def test_the_callers_matrix_is_left_alone():
    totals = RunningTotals()
    matrix = many_statistics([torch.ones(2)])
    before = matrix.clone()
    for step in range(2):
        totals.add(Role.GRADIENT, step, [0], matrix)
    assert torch.equal(matrix, before)


@given(st.lists(st.tuples(st.integers(0, 3), TENSORS), max_size=8))
@settings(deadline=None)
def test_rows_of_one_output_merge_into_its_sum(calls):
    ids, matrix = merge_rows([id_ for id_, _ in calls], many_statistics([tensor for _, tensor in calls]))
    assert ids == sorted({id_ for id_, _ in calls})
    for id_, row in zip(ids, matrix.tolist(), strict=True):
        whole = torch.cat([tensor for other, tensor in calls if other == id_])
        assert row == pytest.approx(many_statistics([whole])[0].tolist())
