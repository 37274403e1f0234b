"""From files to evidence, from folders to files, and one sentence for everything that cannot be read."""

from __future__ import annotations

import gc
import os
import sqlite3
import tempfile
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.runfile.samples import EVENT, INFO, MODULE, OPTIMIZER, OUTPUT, PARAMETER, TOTAL, write_sample
from whygrad.errors import RunFileError
from whygrad.evidence import Evidence
from whygrad.model import Role, Statistics
from whygrad.runfile.reader import find_runs, newest_run, rank_files, read_evidence


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return write_sample(tmp_path / "rank0.whygrad", steps=5)


def execute(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path)) as connection:
        for statement in statements:
            connection.execute(statement)
        connection.commit()


def everything(evidence: Evidence) -> None:
    for role in Role:
        for step in evidence.sample(role):
            evidence.matrices.read(step, role)
            evidence.matrices.histogram(step, role)


def refused(path: Path, words: str) -> None:
    """Check that reading `path` ends with one sentence that holds `words`, names the file and says what to do."""
    with pytest.raises(RunFileError, match=words) as raised:
        everything(read_evidence(path))
    message = str(raised.value)
    assert f"`{path}`" in message
    assert "\n" not in message
    assert ";" in message or ":" in message


def test_everything_that_was_written_is_evidence(path: Path) -> None:
    evidence = read_evidence(path)

    assert evidence.info == INFO
    assert (evidence.modules, evidence.parameters, evidence.outputs) == ((MODULE,), (PARAMETER,), (OUTPUT,))
    assert (evidence.optimizers, evidence.events, evidence.totals) == ((OPTIMIZER,), (EVENT,), (TOTAL,))
    assert [step.id for step in evidence.steps] == [0, 1, 2, 3, 4]
    assert evidence.series(Role.GRADIENT, 1)[3] == (3, Statistics(4, -3))


def test_steps_are_left_out_on_request(path: Path) -> None:
    evidence = read_evidence(path, with_steps=False)

    assert evidence.steps == ()
    assert evidence.matrices.steps(Role.GRADIENT) == (0, 1, 2, 3, 4)


def test_reading_leaves_the_file_as_it_is(path: Path) -> None:
    def state() -> tuple[object, ...]:
        return path.read_bytes(), path.stat().st_mtime_ns, list(path.parent.iterdir())

    before = state()
    everything(read_evidence(path))

    assert state() == before


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="needs /proc")
def test_the_file_is_closed_with_its_evidence(path: Path) -> None:
    def is_open() -> bool:
        return path in [link.readlink() for link in Path("/proc/self/fd").iterdir() if link.is_symlink()]

    evidence = read_evidence(path)
    assert is_open()
    del evidence
    gc.collect()

    assert not is_open()


@pytest.mark.parametrize("name", ["a b", "a#b", "a?mode=rw", "100%20", "100%", "{name}", "Zürich", "a&b;c"])
def test_any_file_name_is_read(tmp_path: Path, name: str) -> None:
    path = write_sample(tmp_path / name / f"{name}.whygrad")

    assert read_evidence(path).info == INFO


def test_a_relative_path_is_read(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(path.parent)

    assert read_evidence(Path("rank0.whygrad")).info == INFO


def test_a_file_that_is_missing_is_one_sentence(tmp_path: Path) -> None:
    refused(tmp_path / "rank0.whygrad", "does not exist; `whygrad run` on a script makes a run file")


def test_a_file_below_a_file_is_one_sentence(path: Path) -> None:
    refused(path / "rank0.whygrad", "cannot be opened")


def test_a_folder_is_one_sentence(tmp_path: Path) -> None:
    refused(tmp_path, "is a folder; name a run file in it")


def test_an_empty_file_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "empty").touch()

    refused(tmp_path / "empty", "is empty: its run ended before anything was written; run the program again")


@pytest.mark.parametrize("contents", [b"{}", b"SQLite format 3\0" + bytes(40), b"\0" * 5000, b"PK\x03\x04" * 2000])
def test_a_file_of_another_kind_is_one_sentence(tmp_path: Path, contents: bytes) -> None:
    (tmp_path / "other").write_bytes(contents)

    refused(tmp_path / "other", "is not a run file; name one|is damaged or cut off")


def test_a_database_of_another_program_is_one_sentence(tmp_path: Path) -> None:
    execute(tmp_path / "other.db", "CREATE TABLE parameter (id INTEGER)")

    refused(tmp_path / "other.db", "is a SQLite database of another program; name a file that `whygrad run` wrote")


def test_a_file_of_a_newer_schema_is_one_sentence(path: Path) -> None:
    execute(path, "PRAGMA user_version = 2")

    refused(path, r"was written by a newer whygrad \(schema 2, this one reads up to 1\); upgrade whygrad")


@pytest.mark.parametrize("share", [0.001, 0.01, 0.2, 0.5, 0.9, 0.999, 0.99999])
def test_a_file_that_was_cut_off_is_one_sentence(path: Path, share: float) -> None:
    contents = path.read_bytes()
    path.write_bytes(contents[: int(len(contents) * share)])

    refused(path, "is damaged or cut off|is not a run file")


@pytest.mark.parametrize(
    "statement",
    [
        "DROP TABLE output",
        "DELETE FROM meta WHERE key = 'script'",
        "UPDATE meta SET value = '{' WHERE key = 'argv'",
        "UPDATE meta SET value = '3' WHERE key = 'raised'",
        "DELETE FROM place",
        "UPDATE place SET excerpt = 'x'",
        "UPDATE total SET role = 'taste'",
        "UPDATE event SET detail = replace(hex(zeroblob(50000)), '0', '[')",
        "UPDATE total SET sum = 'many'",
        "UPDATE parameter SET name = CAST(x'ff00' AS TEXT)",
        "ALTER TABLE parameter RENAME COLUMN shape TO size",
        "UPDATE matrix SET statistics = x'00'",
        "UPDATE matrix SET statistics = zeroblob(64)",
        "UPDATE layout SET ids = x'000000'",
        "UPDATE histogram SET counts = 'none'",
    ],
)
def test_contents_that_make_no_sense_are_one_sentence(path: Path, statement: str) -> None:
    execute(path, statement)

    refused(path, r"is damaged or cut off \(.+\); copy it again, or run the program again")


@settings(deadline=None, max_examples=60)
@given(where=st.floats(0, 1, exclude_max=True), garbage=st.binary(min_size=1, max_size=600))
def test_garbage_anywhere_in_the_file_raises_nothing_but_run_file_errors(where: float, garbage: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "rank0.whygrad")
        contents = bytearray(sample_bytes())
        start = int(where * len(contents))
        contents[start : start + len(garbage)] = garbage
        path.write_bytes(contents)
        with suppress(RunFileError):
            everything(read_evidence(path))


def sample_bytes() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        return write_sample(Path(folder, "rank0.whygrad"), steps=3).read_bytes()


def test_matrices_are_not_read_before_they_are_asked_for(path: Path) -> None:
    execute(path, "UPDATE matrix SET statistics = x'00'")
    evidence = read_evidence(path)

    assert evidence.sample(Role.GRADIENT) == (0, 1, 2, 3, 4)
    with pytest.raises(RunFileError, match="damaged"):
        evidence.matrices.read(0, Role.GRADIENT)


@pytest.mark.skipif(sqlite3.sqlite_version_info < (3, 35), reason="needs DROP COLUMN")
def test_a_column_that_an_older_file_lacks_has_its_default(path: Path) -> None:
    execute(path, "ALTER TABLE parameter DROP COLUMN aliases", "ALTER TABLE parameter DROP COLUMN registered")
    [parameter] = read_evidence(path).parameters

    assert parameter.aliases == ()
    assert parameter.registered is True
    assert parameter.uses == PARAMETER.uses


def test_a_column_that_this_version_does_not_know_is_left_out(path: Path) -> None:
    execute(path, "ALTER TABLE parameter ADD COLUMN colour TEXT")

    assert read_evidence(path).parameters == (PARAMETER,)


@pytest.fixture
def make_run(tmp_path: Path) -> Callable[..., Path]:
    def make(name: str, *files: str, written: float = 1e9) -> Path:
        run = tmp_path / ".whygrad" / name
        run.mkdir(parents=True)
        for file in files or ("rank0.whygrad",):
            (run / file).write_bytes(b"x")
            os.utime(run / file, (written, written))
        return run

    return make


def test_runs_are_found_by_when_they_started_and_not_by_when_they_were_last_written(
    make_run: Callable[..., Path], tmp_path: Path
) -> None:
    long = make_run("a-20261130T071200-9", written=5e9)
    newest = make_run("b-20261130T071300Z-10", written=4e9)
    oldest = make_run("z-x-20251231T235959-11", written=6e9)

    assert find_runs(tmp_path) == [newest, long, oldest]
    assert newest_run(tmp_path) == newest


def test_of_runs_that_started_in_the_same_second_the_last_written_is_the_newest(
    make_run: Callable[..., Path], tmp_path: Path
) -> None:
    later = make_run("demo-20261130T071200-8", written=2000)
    earlier = make_run("demo-20261130T071200-9", written=1000)

    assert find_runs(tmp_path) == [later, earlier]


def test_a_run_of_another_name_is_as_old_as_its_files(make_run: Callable[..., Path], tmp_path: Path) -> None:
    named = make_run("mine", written=1764484319)  # 2025-11-30 06:31:59
    before = make_run("a-20251130T063100-1")
    after = make_run("a-20251130T063200-1")

    assert find_runs(tmp_path) == [after, named, before]


def test_folders_and_files_that_are_no_runs_are_passed_over(make_run: Callable[..., Path], tmp_path: Path) -> None:
    run = make_run("a-20261130T071200-9")
    make_run("b-20261130T071300-9", "rank0.whygrad-journal", "notes.txt")
    (tmp_path / ".whygrad" / ".gitignore").touch()

    assert find_runs(tmp_path) == [run]


def test_without_runs_there_is_no_newest_one(tmp_path: Path) -> None:
    assert find_runs(tmp_path) == []
    with pytest.raises(RunFileError, match=r"\.whygrad` holds no runs; `whygrad run` on a script makes one"):
        newest_run(tmp_path)


def test_rank_files_come_in_the_order_of_ranks(make_run: Callable[..., Path]) -> None:
    names = ["rank10.whygrad", "rank2.whygrad", "rank0.whygrad", "rank0.whygrad-journal"]
    run = make_run("a-20261130T071200-9", *names)

    assert [file.name for file in rank_files(run)] == ["rank0.whygrad", "rank2.whygrad", "rank10.whygrad"]


def test_a_single_file_is_a_run_of_one_rank(path: Path) -> None:
    assert rank_files(path) == [path]


def test_a_run_that_does_not_exist_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(RunFileError, match="nowhere` does not exist; name a run's folder"):
        rank_files(tmp_path / "nowhere")


def test_a_folder_without_rank_files_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(RunFileError, match="holds no run files; name a run's folder"):
        rank_files(tmp_path)


@pytest.mark.parametrize("find", [find_runs, rank_files])
def test_a_folder_that_may_not_be_listed_is_one_sentence(
    find: Callable[[Path], list[Path]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def iterdir(_: Path) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "iterdir", iterdir)

    with pytest.raises(RunFileError, match=r"cannot be listed \(Permission denied\); check its permissions"):
        find(tmp_path)
