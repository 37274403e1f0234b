"""Which processes that a program starts are watched, and what becomes of their targets."""

import multiprocessing
import os
import pickle
from types import SimpleNamespace

import pytest

from whygrad.launch.options import RunOptions
from whygrad.launch.workers import MAX_WORKERS, Watched, Workers


def train(rank):
    return rank + 1


def fails():
    msg = "broken"
    raise ValueError(msg)


@pytest.fixture
def workers():
    user = SimpleNamespace(owns=lambda code: code.co_filename == __file__)
    return Workers(SimpleNamespace(user=user), RunOptions("train.py", 0, "", "run"))


def process(target, method="fork"):
    return multiprocessing.get_context(method).Process(target=target)


def test_a_function_of_the_program_is_watched_under_the_number_of_its_process(workers):
    started = [process(train), process(train, "spawn")]

    for each in started:
        workers._prepare(each)

    assert [each._target.number for each in started] == [0, 1]
    assert [RunOptions.loads(each._target.options).rank for each in started] == [0, 1]
    assert all(each._target.target is train for each in started)


@pytest.mark.parametrize("target", [os.getpid, pickle.dumps, None])
def test_other_processes_are_left_alone(workers, target):
    other = process(target)

    workers._prepare(other)

    assert other._target is target


def test_so_are_those_of_another_process_and_those_beyond_a_limit(workers):
    forked = Workers(workers.session, workers.options, pid=-1)
    full = Workers(workers.session, workers.options, count=MAX_WORKERS)

    for each in (forked, full):
        other = process(train)
        each._prepare(other)
        assert other._target is train


def test_starting_processes_is_put_back(workers):
    before = multiprocessing.process.BaseProcess.start
    undo = workers.follow()
    assert multiprocessing.process.BaseProcess.start is not before
    undo()

    assert multiprocessing.process.BaseProcess.start is before


def test_a_target_can_be_pickled_and_returns_what_the_function_returns():
    pickled = pickle.dumps(Watched(train, "not JSON: the program goes on unwatched", 0))

    assert pickle.loads(pickled)(3) == 4  # noqa: S301 - our own


def test_its_errors_show_no_frame_of_ours():
    with pytest.raises(ValueError, match="broken") as raised:
        Watched(fails, "", 0)()

    files = [entry.path.name for entry in raised.traceback]
    assert "workers.py" not in files
