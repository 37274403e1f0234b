"""What waits between a recorded step and the run file."""

from __future__ import annotations

import pytest
import torch

from tests.probe.watched import watched
from whygrad.model import STATISTICS, Role, RunInfo, Step
from whygrad.probe import backlog as backlogs
from whygrad.probe.backlog import Backlog
from whygrad.runfile.reader import read_evidence
from whygrad.runfile.writer import RunWriter

SQUARES = STATISTICS.index("sum_squares")


@pytest.fixture
def writer(tmp_path):
    return RunWriter(tmp_path / "rank0.whygrad", RunInfo(script="train.py"))


def rows(*squares):
    matrix = torch.zeros(len(squares), len(STATISTICS), dtype=torch.float64)
    matrix[:, 0], matrix[:, SQUARES] = 2.0, torch.tensor(squares, dtype=torch.float64)
    return matrix


def read(writer, tmp_path, backlog):
    backlog.settle()
    writer.put_totals(backlog.totals.totals())
    writer.close()
    return read_evidence(tmp_path / "rank0.whygrad")


def step(number, optimizer=0, recorded=True):
    return Step(id=number, optimizer=optimizer, time_s=float(number), backwards=1, loss=1.0, recorded=recorded)


def test_a_step_gets_the_norms_over_its_own_matrices(writer, tmp_path):
    backlog = Backlog(writer)
    for number in range(3):
        backlog.add(number, Role.GRADIENT, [0, 1], rows(9.0 * (number + 1) ** 2, 16.0 * (number + 1) ** 2))
        backlog.add(number, Role.WEIGHT, [0, 1], rows(1.0, 0.0))
        backlog.add_step(step(number))
    evidence = read(writer, tmp_path, backlog)
    assert [each.gradient_l2 for each in evidence.steps] == [5.0, 10.0, 15.0]
    assert [each.weight_l2 for each in evidence.steps] == [1.0] * 3
    assert [each.update_l2 for each in evidence.steps] == [None] * 3


def test_the_rows_of_each_step_are_read_back_as_they_were(writer, tmp_path):
    backlog = Backlog(writer)
    for number in range(4):
        ids = [0, 1] if number % 2 else [2, 1]  # two optimizers that take turns
        backlog.add(number, Role.GRADIENT, ids, rows(number, 10 + number))
        backlog.add_step(step(number))
    evidence = read(writer, tmp_path, backlog)
    found = [{i: s.sum_squares for i, s in evidence.matrices.read(n, Role.GRADIENT).items()} for n in range(4)]
    assert found == [{2: 0, 1: 10}, {0: 1, 1: 11}, {2: 2, 1: 12}, {0: 3, 1: 13}]
    assert evidence.total(Role.GRADIENT, 1).statistics.sum_squares == 10 + 11 + 12 + 13
    assert evidence.total(Role.GRADIENT, 0).steps == 2


def test_an_output_that_was_called_several_times_has_one_row(writer, tmp_path):
    backlog = Backlog(writer)
    backlog.add(0, Role.OUTPUT, [3, 1, 3], rows(1.0, 2.0, 4.0))
    backlog.add_step(step(0))
    found = read(writer, tmp_path, backlog).matrices.read(0, Role.OUTPUT)
    assert {i: (s.count, s.sum_squares) for i, s in found.items()} == {1: (2, 2.0), 3: (4, 5.0)}


def test_the_first_step_that_is_not_finite_is_the_earliest_whatever_the_order(writer, tmp_path):
    broken = rows(1.0)
    broken[0, STATISTICS.index("nans")] = 1
    backlog = Backlog(writer)
    for number, ids in ((0, [0]), (1, [0, 1]), (2, [0])):  # those with the same rows are added up together
        backlog.add(number, Role.GRADIENT, ids, torch.cat([broken] * len(ids)) if number else rows(1.0))
        backlog.add_step(step(number))
    assert read(writer, tmp_path, backlog).total(Role.GRADIENT, 0).first_nonfinite_step == 1


def test_what_waits_is_bounded(writer, monkeypatch):
    monkeypatch.setattr(backlogs, "MOST_MATRICES", 8)
    backlog = Backlog(writer)
    for number in range(100):
        backlog.add(number, Role.GRADIENT, [0], rows(1.0))
        backlog.add_step(step(number))
        assert sum(map(len, backlog._matrices.values())) <= 8


def test_nothing_is_lost_at_the_end_of_a_run(tmp_path):
    def fit():
        model = torch.nn.Linear(2, 1)
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        for _ in range(5):
            optimizer.zero_grad()
            model(torch.ones(1, 2)).sum().backward()
            optimizer.step()

    evidence = watched(tmp_path, fit)
    assert [each.id for each in evidence.steps] == list(range(5))
    assert all(each.gradient_l2 and each.weight_l2 and each.update_l2 for each in evidence.steps)
    assert evidence.matrices.steps(Role.UPDATE) == tuple(range(5))
