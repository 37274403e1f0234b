"""What a writer does when it cannot write."""

from __future__ import annotations

import shutil
import sqlite3
import time
from contextlib import closing
from pathlib import Path

import pytest

from tests.runfile.samples import INFO, LARGE, LARGE_ROWS, PARAMETER
from whygrad.errors import RunFileError
from whygrad.model import Role
from whygrad.runfile import writer as writer_module
from whygrad.runfile.reader import read_evidence
from whygrad.runfile.writer import BUFFER_BYTES, RunWriter, ensure_gitignore


def fail_with(code: int, monkeypatch: pytest.MonkeyPatch, *, only_with_locks: bool = False) -> None:
    """Let every attempt to open the file for writing fail, as a file system or a disk would."""
    plain = writer_module.connect

    def connect(path: Path, mode: str, *, nolock: bool = False, timeout_s: float = 0.0) -> sqlite3.Connection:
        if nolock and only_with_locks:
            return plain(path, mode, nolock=nolock, timeout_s=timeout_s)
        error = sqlite3.OperationalError("disk I/O error")
        error.sqlite_errorcode = code
        raise error

    monkeypatch.setattr(writer_module, "connect", connect)


def test_a_file_that_exists_is_not_written_over(path: Path) -> None:
    path.parent.mkdir()
    path.write_text("precious")

    with pytest.raises(RunFileError, match="exists already"):
        RunWriter(path, INFO)
    assert path.read_text() == "precious"


def test_a_place_where_no_folder_can_be_made_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    with pytest.raises(RunFileError, match=r"cannot be written \(Not a directory\); make room, or choose another"):
        RunWriter(tmp_path / "file" / "run" / "rank0.whygrad", INFO)


def test_a_disk_without_room_leaves_no_empty_file(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fail_with(sqlite3.SQLITE_FULL, monkeypatch)

    with pytest.raises(RunFileError, match="cannot be written"):
        RunWriter(path, INFO)
    assert not path.exists()


def test_a_file_system_without_locks_is_written_without_them(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fail_with(sqlite3.SQLITE_IOERR_LOCK, monkeypatch, only_with_locks=True)
    writer = RunWriter(path, INFO)
    writer.put(PARAMETER)
    writer.close()

    assert read_evidence(path).parameters == (PARAMETER,)


def test_a_reader_in_the_way_postpones_a_flush(writer: RunWriter, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer_module, "_BUSY_TIMEOUT_S", 0.01)
    writer.put(PARAMETER)
    with closing(sqlite3.connect(path, isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM meta").fetchall()
        writer.flush()
    assert read_evidence(path).parameters == ()
    writer.flush()

    assert read_evidence(path).parameters == (PARAMETER,)


def test_a_reader_in_the_way_costs_little_time(writer: RunWriter, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer_module, "_BUSY_TIMEOUT_S", 0.1)
    with closing(sqlite3.connect(path, isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM meta").fetchall()
        start = time.monotonic()
        for step in range(3 * BUFFER_BYTES // len(LARGE)):  # more than SQLite holds in memory of its own accord
            writer.add_matrix(step, Role.GRADIENT, range(LARGE_ROWS), LARGE)

    assert time.monotonic() - start < 3.0


def test_what_waits_stays_bounded_when_it_can_never_be_written(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writer = RunWriter(path, INFO)
    fail_with(sqlite3.SQLITE_BUSY, monkeypatch)
    room = 4 * BUFFER_BYTES // len(LARGE)
    for step in range(room):
        writer.add_matrix(step, Role.GRADIENT, range(LARGE_ROWS), LARGE)
    with pytest.raises(RunFileError, match="cannot be written"):
        writer.add_matrix(room, Role.GRADIENT, range(LARGE_ROWS), LARGE)
    monkeypatch.undo()
    writer.add_matrix(0, Role.GRADIENT, range(LARGE_ROWS), LARGE)
    writer.close()

    assert writer._buffered == 0
    assert read_evidence(path).matrices.steps(Role.GRADIENT) == ()


def test_what_could_not_be_written_is_written_when_there_is_room_again(
    writer: RunWriter, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer.put(PARAMETER)
    fail_with(sqlite3.SQLITE_FULL, monkeypatch)
    with pytest.raises(RunFileError, match="cannot be written"):
        writer.flush()
    monkeypatch.undo()
    writer.flush()

    assert read_evidence(path).parameters == (PARAMETER,)


def test_a_run_folder_that_the_program_deletes_is_one_sentence(path: Path) -> None:
    writer = RunWriter(path, INFO)
    shutil.rmtree(path.parent)
    writer.put(PARAMETER)

    with pytest.raises(RunFileError, match="cannot be written"):
        writer.close()
    writer.close()  # and then it is closed


def test_git_ignores_what_is_in_the_folder_of_runs(tmp_path: Path) -> None:
    folder = tmp_path / "deep" / ".whygrad"
    ensure_gitignore(folder)

    assert (folder / ".gitignore").read_text() == "*\n"


def test_a_gitignore_that_someone_wrote_stays(tmp_path: Path) -> None:
    (tmp_path / ".gitignore").write_text("*.tmp\n")
    ensure_gitignore(tmp_path)

    assert (tmp_path / ".gitignore").read_text() == "*.tmp\n"


def test_a_file_where_the_folder_of_runs_should_be_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / ".whygrad").touch()

    with pytest.raises(RunFileError, match="cannot be written"):
        ensure_gitignore(tmp_path / ".whygrad")
