"""Several processes and one run file: killed writers, forked children, readers of a run in progress."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import time
from contextlib import closing
from pathlib import Path

import pytest

from tests.runfile.samples import python, write_sample
from whygrad.errors import RunFileError
from whygrad.model import Role
from whygrad.runfile import connection as connection_module
from whygrad.runfile.reader import read_evidence

WRITE_FOR_EVER = """
    ROWS = range(300)
    writer = RunWriter(Path(sys.argv[1]), INFO)
    values = matrix(*[(1.0,)] * 300)
    for step in range(10**9):
        writer.add_step(Step(step, 0, 0.0))
        for role in Role:
            writer.add_matrix(step, role, ROWS, values)
        writer.flush()
        print(step, flush=True)
"""
DIE_IN_A_COMMIT = """
    import os, signal, sqlite3
    connection = sqlite3.connect(sys.argv[1], isolation_level=None)
    connection.execute("PRAGMA journal_mode = TRUNCATE")
    connection.execute("PRAGMA cache_size = 1")  # so that the file is changed before the commit
    connection.execute("BEGIN")
    connection.execute("DELETE FROM matrix")
    connection.execute("UPDATE step SET time_s = -1")
    os.kill(os.getpid(), signal.SIGKILL)
"""
FORK = """
    import os
    writer = RunWriter(Path(sys.argv[1]), INFO)
    writer.put(PARAMETER)
    child = os.fork()
    if child == 0:
        writer.put_events([EVENT])
        writer.add_matrix(0, Role.GRADIENT, [0], b"of the wrong size")
        writer.flush()
        writer.close()
        sys.exit(0)  # not os._exit: what lies in memory is torn down too
    assert os.waitpid(child, 0)[1] == 0
    writer.add_step(STEP)
    writer.close()
"""


def steps_printed(writer: subprocess.Popen[str]) -> list[int]:
    output = writer.communicate(timeout=20)[0]
    return [int(line) for line in output.splitlines() if line.strip()]


def kill_when_it_has_written(writer: subprocess.Popen[str], steps: int) -> None:
    assert writer.stdout is not None
    for _ in range(steps):
        writer.stdout.readline()
    os.kill(writer.pid, signal.SIGKILL)


@pytest.mark.parametrize("steps", [1, 5, 17, 40, 90])
def test_a_killed_run_is_readable_up_to_its_last_flush(tmp_path: Path, steps: int) -> None:
    path = tmp_path / "rank0.whygrad"
    with python(WRITE_FOR_EVER, path) as writer:
        kill_when_it_has_written(writer, steps)
        last = max(steps_printed(writer), default=steps - 1)
    evidence = read_evidence(path)

    written = tuple(step.id for step in evidence.steps)
    assert written == tuple(range(len(written)))
    assert written[-1] >= last
    for role in Role:
        assert evidence.matrices.steps(role) == written
        assert len(evidence.matrices.read(written[-1], role)) == 300


def half_committed(tmp_path: Path) -> Path:
    path = write_sample(tmp_path / "rank0.whygrad", steps=400)
    with python(DIE_IN_A_COMMIT, path) as writer:
        assert writer.wait(timeout=20) == -signal.SIGKILL
    assert path.with_name("rank0.whygrad-journal").stat().st_size > 0
    return path


def test_a_commit_that_a_kill_cut_in_half_is_taken_back(tmp_path: Path) -> None:
    evidence = read_evidence(half_committed(tmp_path))

    assert len(evidence.steps) == 400
    assert all(step.time_s >= 0 for step in evidence.steps)
    assert len(evidence.matrices.steps(Role.GRADIENT)) == 400
    assert evidence.matrices.read(399, Role.GRADIENT)[0].sum == 399


def test_half_a_commit_in_a_folder_that_cannot_be_written_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = connection_module.connect

    def read_only(path: Path, mode: str, *, nolock: bool = False, timeout_s: float = 0.0) -> sqlite3.Connection:
        del mode
        return plain(path, "ro", nolock=nolock, timeout_s=timeout_s)

    monkeypatch.setattr(connection_module, "connect", read_only)

    with pytest.raises(RunFileError, match=r"cut off in mid-write .* copy it together with `.*-journal` to a folder"):
        read_evidence(half_committed(tmp_path))


class WithoutLocks:
    """A connection to a file on a file system that has no locks."""

    def execute(self, *_: object) -> None:
        error = sqlite3.OperationalError("disk I/O error")
        error.sqlite_errorcode = sqlite3.SQLITE_IOERR_LOCK
        raise error

    def close(self) -> None:
        pass


def without_locks(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = connection_module.connect

    def connect(path: Path, mode: str, *, nolock: bool = False, timeout_s: float = 0.0) -> object:
        return plain(path, mode, nolock=True, timeout_s=timeout_s) if nolock else WithoutLocks()

    monkeypatch.setattr(connection_module, "connect", connect)


def test_a_file_on_a_file_system_without_locks_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_sample(tmp_path / "rank0.whygrad")
    without_locks(monkeypatch)

    assert len(read_evidence(path).steps) == 1


def test_without_locks_a_commit_that_may_be_going_on_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = half_committed(tmp_path)
    journal = path.with_name("rank0.whygrad-journal")
    size = journal.stat().st_size
    without_locks(monkeypatch)

    with pytest.raises(RunFileError, match="is being written on a file system without locks; try again in a minute"):
        read_evidence(path)
    assert journal.stat().st_size == size


def test_without_locks_a_commit_of_an_hour_ago_is_taken_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = half_committed(tmp_path)
    hour_ago = time.time() - 3600
    os.utime(path.with_name("rank0.whygrad-journal"), (hour_ago, hour_ago))
    without_locks(monkeypatch)

    assert len(read_evidence(path).steps) == 400


def test_a_run_in_progress_is_read_again_and_again(tmp_path: Path) -> None:
    path = tmp_path / "rank0.whygrad"
    seen = []
    with python(WRITE_FOR_EVER, path) as writer:
        assert writer.stdout is not None
        writer.stdout.readline()
        until = time.monotonic() + 1.0
        while time.monotonic() < until:
            evidence = read_evidence(path)
            seen.append(len(evidence.steps))
            for role in Role:  # the file goes on, the evidence does not
                assert len(evidence.matrices.steps(role)) == seen[-1]
            assert len(evidence.matrices.read(seen[-1] - 1, Role.UPDATE)) == 300
        writer.kill()
        steps_printed(writer)

    assert seen == sorted(seen)
    assert seen[-1] > seen[0]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_writes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "rank0.whygrad"
    with python(FORK, path) as program:
        _, errors = program.communicate(timeout=20)
    evidence = read_evidence(path)

    assert (program.returncode, errors) == (0, "")
    assert evidence.events == ()
    assert evidence.matrices.steps(Role.GRADIENT) == ()
    assert len(evidence.parameters) == 1
    assert len(evidence.steps) == 1


def test_a_lock_of_another_program_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_sample(tmp_path / "rank0.whygrad")
    monkeypatch.setattr(connection_module, "READ_TIMEOUT_S", 0.01)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")

        with pytest.raises(RunFileError, match="is locked by another program; close that program and try again"):
            read_evidence(path)


def test_reading_never_imports_torch(tmp_path: Path) -> None:
    path = write_sample(tmp_path / "rank0.whygrad")
    with python("import whygrad.runfile.reader; print('torch' in sys.modules)", path) as program:
        output, errors = program.communicate(timeout=20)

    assert (output, errors) == ("False\n", "")
