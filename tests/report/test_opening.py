"""Of the files of a run, those of processes that only serve the ones that train are left out."""

import pytest

from whygrad.model import Raised, RunInfo
from whygrad.report.opening import open_run
from whygrad.runfile.writer import RunWriter


def write(folder, name, **fields):
    writer = RunWriter(folder / f"{name}.whygrad", RunInfo("train.py", **fields))
    writer.update_info(RunInfo("train.py", ended=True, **fields))
    writer.close()


def opened(folder):
    return [(evidence.info.rank, evidence.info.steps) for evidence in open_run(folder).ranks]


def test_a_program_that_starts_its_ranks_itself_is_none_of_them(tmp_path):
    write(tmp_path, "rank0")
    write(tmp_path, "worker1", rank=1, world_size=2, steps=7)
    write(tmp_path, "worker0", rank=0, world_size=2, steps=8)

    assert opened(tmp_path) == [(0, 8), (1, 7)]


def test_processes_that_only_act_for_a_program_that_trains_are_left_out(tmp_path):
    write(tmp_path, "rank0", steps=5)
    write(tmp_path, "worker0", forwards=100)

    assert opened(tmp_path) == [(0, 5)]


@pytest.mark.parametrize("fields", [{}, {"forwards": 3}])
def test_where_nothing_trains_nothing_is_left_out(fields, tmp_path):
    write(tmp_path, "rank0", **fields)
    write(tmp_path, "worker0", rank=1, **fields)

    assert len(opened(tmp_path)) == 2


def test_a_rank_that_failed_before_it_trained_is_kept(tmp_path):
    write(tmp_path, "rank0", steps=5, world_size=2)
    write(tmp_path, "rank1", rank=1, world_size=2, raised=Raised("RuntimeError", "broken"))

    assert opened(tmp_path) == [(0, 5), (1, 0)]
