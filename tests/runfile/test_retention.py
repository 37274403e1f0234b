"""The file of a long run: never larger than it may be, and what is still in it belongs together."""

from __future__ import annotations

import math
import sqlite3
import struct
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from tests.runfile.samples import INFO, PARAMETER, TOTAL, matrix, python
from whygrad.evidence import Evidence
from whygrad.model import Activation, Role, Step
from whygrad.runfile import writer as writer_module
from whygrad.runfile.connection import connect
from whygrad.runfile.reader import read_evidence
from whygrad.runfile.retention import Retention
from whygrad.runfile.writer import RunWriter

MB = 10**6
ROLES = (Role.GRADIENT, Role.WEIGHT, Role.UPDATE)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "rank0.whygrad"


def add(writer: RunWriter, step: Step, rows: Sequence[int] = (0,)) -> None:
    """Write a step, and its statistics where it was recorded."""
    if step.recorded:
        for role in ROLES:
            writer.add_matrix(step.id, role, rows, matrix(*[(float(step.id),)] * len(rows)))
        writer.add_histogram(step.id, Role.GRADIENT, rows, struct.pack("<32I", *range(32)) * len(rows))
    writer.add_step(step)


def steps(count: int, *, every: int = 1, optimizers: int = 1) -> Iterator[Step]:
    for number in range(count):
        recorded = number // optimizers % every == 0
        yield Step(number, number % optimizers, 0.1 * number, loss=1 / (number + 1), recorded=recorded)


def written(path: Path, given: Iterator[Step], *, retention: Retention | None, flush_every: int = 20) -> Evidence:
    """Write steps and return what a reader finds."""
    writer = RunWriter(path, INFO, retention=retention)
    for step in given:
        add(writer, step)
        if step.id % flush_every == 0:
            writer.flush()
    writer.close()
    return read_evidence(path)


def number(path: Path, sql: str) -> int:
    with closing(sqlite3.connect(path)) as connection:
        return int(connection.execute(sql).fetchone()[0])


@pytest.mark.parametrize(("tensors", "count"), [(1, 3000), (12, 1500), (100, 400), (1000, 100)])
@pytest.mark.parametrize("flush_every", [9, 40])
def test_the_file_is_never_larger_than_it_may_be(path: Path, tensors: int, count: int, flush_every: int) -> None:
    writer = RunWriter(path, INFO, max_bytes=MB)
    largest = 0
    for step in steps(count):
        add(writer, step, range(tensors))
        if step.id % flush_every == 0:
            writer.flush()
            largest = max(largest, path.stat().st_size)
    writer.close()
    evidence = read_evidence(path)

    assert 0.5 * MB < largest <= MB
    for role in ROLES:
        recorded = evidence.matrices.steps(role)
        assert recorded[-1] == count - 1
        assert len(evidence.matrices.read(count - 1, role)) == tensors
    assert evidence.steps[0].id == 0


def test_what_alone_is_too_large_is_left_out_and_the_rest_is_written(path: Path) -> None:
    writer = RunWriter(path, INFO, max_bytes=MB)
    writer.put(PARAMETER)
    for step in steps(8):
        add(writer, step, range(20_000))
    writer.close()
    evidence = read_evidence(path)

    assert path.stat().st_size <= MB
    assert evidence.matrices.steps(Role.GRADIENT) == ()
    assert [step.id for step in evidence.steps] == list(range(8))
    assert evidence.parameters == (PARAMETER,)


def test_the_layouts_of_what_was_thinned_go_too(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer_module, "_LAYOUTS_PILED", 100)
    writer = RunWriter(path, INFO, retention=Retention(200, 50))
    for step in steps(1000):
        add(writer, step, (step.id, step.id + 1))
        writer.flush()
    writer.close()
    evidence = read_evidence(path)

    assert number(path, "SELECT count(*) FROM layout") < 400
    for at in evidence.matrices.steps(Role.WEIGHT):
        assert list(evidence.matrices.read(at, Role.WEIGHT)) == [at, at + 1]


def test_a_step_keeps_its_row_while_its_statistics_are_there_and_all_of_these_go_together(path: Path) -> None:
    evidence = written(path, steps(6000, every=10), retention=Retention(300, 200))
    known = {step.id for step in evidence.steps}

    recorded = evidence.matrices.steps(Role.GRADIENT)
    assert 100 <= len(recorded) <= 200
    assert set(recorded) <= known
    assert all(evidence.matrices.steps(role) == recorded for role in ROLES)
    assert [bool(evidence.matrices.histogram(step, Role.GRADIENT)) for step in recorded] == [True] * len(recorded)
    assert number(path, "SELECT count(*) FROM histogram") == len(recorded)
    assert 250 <= len(known) <= 500


def test_both_of_two_optimizers_that_take_turns_stay_recorded(path: Path) -> None:
    evidence = written(path, steps(4000, every=4, optimizers=2), retention=Retention(200, 100))

    old = [step for step in evidence.matrices.steps(Role.GRADIENT) if 500 < step < 2500]
    assert {step % 2 for step in old} == {0, 1}
    assert 0.35 <= sum(step % 2 for step in old) / len(old) <= 0.65


def test_each_step_says_how_many_came_before_it(path: Path) -> None:
    evidence = written(path, steps(3000, every=3, optimizers=2), retention=Retention(200, 100))

    assert evidence.is_thinned
    for step in evidence.steps:
        assert step.position == step.id // 2
        rounds, rest = divmod(step.id, 6)
        assert step.recorded_before == 2 * rounds + min(rest, 2)


def test_a_step_that_a_look_refers_to_keeps_its_row_until_none_does(path: Path) -> None:
    writer = RunWriter(path, INFO, retention=Retention(100, 50))
    writer.put(Activation(0, 0, "sigmoid", steps=(301, 303), flat=(0.0, 0.0), slopes=(1.0, 1.0)))
    given = list(steps(2000))
    for step in given[:1000]:
        add(writer, step)
    writer.flush()
    first = {step.id for step in read_evidence(path).steps}
    writer.put(Activation(0, 0, "sigmoid", steps=(303,), flat=(0.0,), slopes=(1.0,)))
    for step in given[1000:]:
        add(writer, step)
    writer.close()
    second = {step.id for step in read_evidence(path).steps}

    assert {301, 303} <= first
    assert 303 in second
    assert 301 not in second
    assert 305 not in first


def test_the_steps_around_the_first_nan_and_around_a_peak_stay(path: Path) -> None:
    writer = RunWriter(path, INFO, retention=Retention(300, 200))
    for step in steps(12_000):
        loss = math.nan if step.id == 4001 else step.loss
        add(writer, replace(step, loss=loss, gradient_l2=50.0 if step.id == 7007 else 1.0))
        if step.id == 9003:
            writer.put_totals([replace(TOTAL, first_nonfinite_step=9003)])
        if step.id % 100 == 0:
            writer.flush()
    writer.close()
    recorded = read_evidence(path).matrices.steps(Role.GRADIENT)

    for happened in (4001, 7007, 9003):
        assert set(range(happened - 11, happened + 4)) <= set(recorded)
    assert len(recorded) <= 200


def test_what_could_not_be_taken_out_is_taken_out_with_the_next_commit(path: Path) -> None:
    writer = RunWriter(path, INFO, retention=Retention(100, 50))
    given = list(steps(1200))
    for step in given[:600]:
        add(writer, step)
    writer.flush()
    for step in given[600:1000]:
        add(writer, step)
    with closing(connect(path, "rw")) as other:
        other.execute("BEGIN IMMEDIATE")
        writer.flush()
        other.execute("ROLLBACK")
    before = len(read_evidence(path).steps)
    for step in given[1000:]:
        add(writer, step)
    writer.close()
    evidence = read_evidence(path)

    assert evidence.steps[-1].id == 1199
    assert len(evidence.steps) <= 150
    assert len(evidence.matrices.steps(Role.UPDATE)) <= 50
    assert before <= 150


WRITE_FOR_EVER = """
    from tests.runfile.test_retention import add, steps
    writer = RunWriter(Path(sys.argv[1]), INFO, max_bytes=10**6)
    for step in steps(10**9):
        add(writer, step, range(100))
        writer.flush()
        print(step.id, flush=True)
"""


@pytest.mark.parametrize("count", [60, 97, 160])
def test_a_run_killed_while_it_is_thinned_is_readable(path: Path, count: int) -> None:
    with python(WRITE_FOR_EVER, path) as program:
        assert program.stdout is not None
        for _ in range(count):
            last = int(program.stdout.readline())
        program.kill()
        program.wait(timeout=20)
    evidence = read_evidence(path)

    recorded = evidence.matrices.steps(Role.GRADIENT)
    assert evidence.steps[-1].id >= last
    assert recorded[-1] == evidence.steps[-1].id
    assert all(evidence.matrices.steps(role) == recorded for role in ROLES)
    assert len(recorded) < len(evidence.steps)
    assert number(path, "SELECT count(*) FROM pragma_integrity_check WHERE integrity_check = 'ok'") == 1
    assert path.stat().st_size <= MB
