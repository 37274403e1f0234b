"""What waits, what replaces what, and how it lies in the file."""

from __future__ import annotations

import sqlite3
import struct
import threading
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from tests.runfile.samples import (
    EVENT,
    INFO,
    LARGE,
    LARGE_ROWS,
    MODULE,
    OPTIMIZER,
    OTHER,
    OUTPUT,
    PARAMETER,
    PLACE,
    STEP,
    TOTAL,
    matrix,
)
from whygrad.model import Event, Role, RunInfo, Statistics, Step
from whygrad.runfile.reader import read_evidence
from whygrad.runfile.writer import BUFFER_BYTES, RunWriter


def query(path: Path, sql: str) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(sql).fetchall()


@pytest.mark.usefixtures("writer")
def test_a_new_file_is_readable_at_once_and_says_what_runs(path: Path) -> None:
    evidence = read_evidence(path)

    assert evidence.info == INFO
    assert evidence.parameters == ()


def test_every_fact_arrives_as_it_was_given(writer: RunWriter, path: Path) -> None:
    for fact in (MODULE, PARAMETER, OUTPUT, OPTIMIZER):
        writer.put(fact)
    writer.put_events([EVENT])
    writer.put_totals([TOTAL])
    writer.add_step(STEP)
    writer.flush()
    evidence = read_evidence(path)

    assert evidence.modules == (MODULE,)
    assert evidence.parameters == (PARAMETER,)
    assert evidence.outputs == (OUTPUT,)
    assert evidence.optimizers == (OPTIMIZER,)
    assert evidence.events == (EVENT,)
    assert evidence.totals == (TOTAL,)
    assert evidence.steps == (STEP,)


def test_nothing_is_in_the_file_before_it_is_flushed(writer: RunWriter, path: Path) -> None:
    writer.put(PARAMETER)

    assert read_evidence(path).parameters == ()


@pytest.mark.parametrize("flushed_between", [True, False])
def test_the_newest_state_of_a_fact_wins(writer: RunWriter, path: Path, *, flushed_between: bool) -> None:
    newest = replace(PARAMETER, gradient_steps=9, made_at=None)
    writer.put(PARAMETER)
    writer.put_totals([TOTAL])
    if flushed_between:
        writer.flush()
    writer.put(newest)
    writer.put_totals([replace(TOTAL, steps=6)])
    writer.flush()
    evidence = read_evidence(path)

    assert evidence.parameters == (newest,)
    assert [total.steps for total in evidence.totals] == [6]


@pytest.mark.parametrize("place", [PLACE, None])
def test_an_event_replaces_the_one_with_its_kind_subject_and_place(
    writer: RunWriter, path: Path, place: object
) -> None:
    first = replace(EVENT, place=place)
    elsewhere = replace(EVENT, place=OTHER)
    other_subject = replace(EVENT, place=place, subject="c.weight")
    later = replace(first, count=50, last_step=49)
    writer.put_events([first, elsewhere, other_subject])
    writer.flush()
    writer.put_events([later])
    writer.flush()

    assert read_evidence(path).events == (later, elsewhere, other_subject)


def test_events_come_in_the_order_of_their_first_time(writer: RunWriter, path: Path) -> None:
    events = [Event("cut", 5, 9, subject="a"), Event("cut", 2, 9, subject="b"), Event("cut", 2, 2, subject="a2")]
    writer.put_events(events)
    writer.flush()

    assert [event.subject for event in read_evidence(path).events] == ["b", "a2", "a"]


def test_a_place_is_stored_once_however_often_it_is_named(writer: RunWriter, path: Path) -> None:
    for i in range(20):
        writer.put(replace(PARAMETER, id=i, made_at=PLACE, assigned_at=OTHER))
        writer.flush()

    assert query(path, "SELECT count(*) FROM place") == [(2,)]
    assert {p.assigned_at for p in read_evidence(path).parameters} == {OTHER}


def test_what_is_known_of_the_run_is_updated(writer: RunWriter, path: Path) -> None:
    ended = RunInfo("train.py", steps=200, ended=True)
    writer.update_info(ended)
    writer.flush()

    assert read_evidence(path).info == ended


def test_a_layout_is_stored_again_only_when_the_tensors_change(writer: RunWriter, path: Path) -> None:
    generator, critic = [0, 1], [2]
    for step in range(0, 20, 2):
        writer.add_matrix(step, Role.GRADIENT, generator, matrix((1,), (2,)))
        writer.add_matrix(step + 1, Role.GRADIENT, critic, matrix((3,)))
        writer.add_histogram(step, Role.GRADIENT, generator, bytes(2 * 32 * 4))
    writer.add_matrix(0, Role.WEIGHT, generator, matrix((1,), (2,)))
    writer.flush()

    assert query(path, "SELECT role, length(ids) FROM layout ORDER BY id") == [
        ("gradient", 8),
        ("gradient", 4),
        ("weight", 8),
    ]
    matrices = read_evidence(path).matrices
    assert matrices.read(18, Role.GRADIENT) == {0: Statistics(1), 1: Statistics(2)}
    assert matrices.read(19, Role.GRADIENT) == {2: Statistics(3)}


def test_sets_of_tensors_that_change_at_every_step_do_not_fill_the_memory(writer: RunWriter, path: Path) -> None:
    for step in range(200):
        writer.add_matrix(step, Role.OUTPUT, [step], matrix((step,)))
    writer.flush()
    matrices = read_evidence(path).matrices

    assert len(writer._layouts._known) == 64
    assert [matrices.read(step, Role.OUTPUT)[step].count for step in matrices.steps(Role.OUTPUT)] == list(range(200))


def test_what_waits_is_written_before_it_takes_much_memory(writer: RunWriter, path: Path) -> None:
    steps = 2 * BUFFER_BYTES // len(LARGE)
    for step in range(steps):
        writer.add_matrix(step, Role.GRADIENT, range(LARGE_ROWS), LARGE)
        assert writer._buffered < BUFFER_BYTES

    assert len(read_evidence(path).matrices.steps(Role.GRADIENT)) > steps // 2


def test_many_small_facts_count_as_memory_too(writer: RunWriter, path: Path) -> None:
    for i in range(BUFFER_BYTES // 512):
        writer.add_step(Step(i, None, 0.0))

    assert len(read_evidence(path).steps) == BUFFER_BYTES // 512


def test_a_fact_that_replaces_a_waiting_one_takes_no_more_memory(writer: RunWriter) -> None:
    writer.put_totals([TOTAL])
    waiting = writer._buffered
    writer.put_totals([replace(TOTAL, steps=6)])

    assert writer._buffered == waiting


@pytest.mark.parametrize("size", [0, 63, 65, 128])
def test_a_matrix_whose_rows_do_not_fit_its_ids_is_refused(writer: RunWriter, size: int) -> None:
    with pytest.raises(ValueError, match=f"a matrix of 1 rows has 64 bytes, not {size}"):
        writer.add_matrix(0, Role.GRADIENT, [0], bytes(size))


def test_a_histogram_whose_rows_do_not_fit_its_ids_is_refused(writer: RunWriter) -> None:
    with pytest.raises(ValueError, match="a histogram of 2 rows has 256 bytes, not 128"):
        writer.add_histogram(0, Role.GRADIENT, [0, 1], bytes(128))


def test_a_matrix_without_rows_is_a_recorded_step(writer: RunWriter, path: Path) -> None:
    writer.add_matrix(4, Role.OUTPUT, [], b"")
    writer.flush()
    matrices = read_evidence(path).matrices

    assert matrices.steps(Role.OUTPUT) == (4,)
    assert matrices.read(4, Role.OUTPUT) == {}


def test_the_bytes_are_little_endian_float64_and_uint32(writer: RunWriter, path: Path) -> None:
    writer.add_matrix(0, Role.GRADIENT, [258], struct.pack("<8d", 1, 2, 3, 4, 5, 6, 7, 8))
    writer.flush()

    assert query(path, "SELECT ids FROM layout") == [(b"\x02\x01\x00\x00",)]
    [(blob,)] = query(path, "SELECT statistics FROM matrix")
    assert struct.unpack("<8d", blob) == (1, 2, 3, 4, 5, 6, 7, 8)


def test_a_closed_writer_does_nothing(path: Path) -> None:
    writer = RunWriter(path, INFO)
    writer.put(PARAMETER)
    writer.close()
    before = path.read_bytes()
    writer.put(replace(PARAMETER, id=1))
    writer.add_matrix(0, Role.GRADIENT, [0], b"")
    writer.flush()
    writer.close()

    assert path.read_bytes() == before
    assert read_evidence(path).parameters == (PARAMETER,)


def test_a_closed_run_leaves_one_file_and_no_journal(path: Path) -> None:
    writer = RunWriter(path, INFO)
    writer.put(PARAMETER)
    writer.close()

    assert [file.name for file in path.parent.iterdir()] == ["rank0.whygrad"]


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="needs /proc")
def test_no_descriptor_of_the_file_is_open_between_two_commits(writer: RunWriter, path: Path) -> None:
    writer.put(PARAMETER)
    writer.flush()
    open_files = [link.readlink() for link in Path("/proc/self/fd").iterdir() if link.is_symlink()]

    assert [file for file in open_files if file.is_relative_to(path.parent)] == []


def test_the_program_may_change_its_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    writer = RunWriter(Path("rank0.whygrad"), INFO)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    writer.put(PARAMETER)
    writer.close()

    assert read_evidence(tmp_path / "rank0.whygrad").parameters == (PARAMETER,)


def test_several_threads_may_write(writer: RunWriter, path: Path) -> None:
    def train(first: int) -> None:
        for step in range(first, first + 50):
            writer.add_step(Step(step, 0, 0.0))
            writer.add_matrix(step, Role.GRADIENT, [0], matrix((step,)))
            writer.flush()

    threads = [threading.Thread(target=train, args=(first,)) for first in (0, 50, 100)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    evidence = read_evidence(path)

    assert [step.id for step in evidence.steps] == list(range(150))
    assert evidence.matrices.steps(Role.GRADIENT) == tuple(range(150))
