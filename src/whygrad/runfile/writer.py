"""Writing a run file: from the facts that the probe hands over to one file per rank.

Facts wait in memory and are committed together. A fact replaces an earlier one with the same key, in memory and in the
file. Nothing of the file is open between two commits, so the program may fork, change its folder, or close every
descriptor it finds. Before a commit would make the file too large, old steps are taken out of it.
"""

from __future__ import annotations

import sqlite3
import struct
from collections.abc import Hashable, Iterable, Sequence
from contextlib import closing, suppress
from dataclasses import fields
from operator import attrgetter
from os import getpid
from pathlib import Path
from threading import RLock
from typing import Any, TypeVar, cast

from whygrad.errors import RunFileError
from whygrad.model import (
    HISTOGRAM_BINS,
    STATISTICS,
    Activation,
    Clip,
    Cut,
    Event,
    Feed,
    Group,
    Happening,
    LossCall,
    LossScale,
    Module,
    Optimizer,
    Output,
    Parameter,
    Place,
    Replica,
    Role,
    Round,
    RunInfo,
    SoftmaxCall,
    Step,
    Symmetry,
    Total,
)
from whygrad.runfile.connection import connect, is_busy
from whygrad.runfile.numbering import Numbers
from whygrad.runfile.retention import Gone, Retention, Turns
from whygrad.runfile.room import has_room, remove, remove_layouts
from whygrad.runfile.rows import to_meta, to_rows, upsert
from whygrad.runfile.schema import APPLICATION_ID, DDL, SCHEMA_VERSION, TABLES

MAX_BYTES = 256 * 10**6  # of a file: about 1,500 recorded steps of 300 tensors, and readily copied and kept
BUFFER_BYTES = 4 * 2**20  # what may wait in memory; more is written unasked
_MOST_BYTES = 4 * BUFFER_BYTES  # what may wait while it cannot be written
_FACT_BYTES = 512  # of a fact in memory, roughly
_LAYOUTS_KEPT = 64  # programs alternate between few sets of tensors, such as those of two optimizers
_LAYOUTS_PILED = 1024  # written since those without use were taken out: each step may have its own set of tensors
_BUSY_TIMEOUT_S = 0.25
_CLOSE_TIMEOUT_S = 5.0  # the last chance may take longer
_NOBODY = 0  # a process id that no process has

_ROW_BYTES = {"matrix": 8 * len(STATISTICS), "histogram": 4 * HISTOGRAM_BINS}
_COUNTED = ("position", "recorded_before")  # of a step: the writer fills them in, the first where it is not known
_STEP_VALUES = attrgetter(*(field.name for field in fields(Step) if field.name not in _COUNTED))
_KEYS = {fact: attrgetter(*table.key) for fact, table in TABLES.items()}

Fact = TypeVar("Fact")
_Seen = Module | Parameter | Cut | Output | Optimizer | Replica | Group | Feed | Symmetry | Activation
_Fact = _Seen | LossCall | SoftmaxCall | Round | Happening | Clip | LossScale


class RunWriter:
    """The one writer of a run file. It does nothing after `close`, and nothing in a process forked from its own.

    Any thread may use it. Every method that stores something may also commit what waits, and raises `RunFileError`
    where the file cannot be written. What waits is then kept for the next try; when it is too much, the writer stops.
    """

    def __init__(
        self, path: Path, info: RunInfo, *, max_bytes: int = MAX_BYTES, retention: Retention | None = None
    ) -> None:
        """Create the file and its folder.

        Args:
            path: Where.
            info: What is run.
            max_bytes: What the file may come to. Old steps make room for new ones; other facts take what they take.
            retention: Chooses the steps that go; None: the usual one.

        Raises:
            RunFileError: The file exists already, or cannot be made.
        """
        self._path = path.absolute()  # the program may change its working directory
        self._nolock = _create(self._path, info)
        self._owner = getpid()
        self._lock = RLock()
        self._info: RunInfo | None = None
        self._facts: dict[type, dict[Hashable, object]] = {fact: {} for fact in TABLES}
        self._steps: dict[int, tuple[Any, ...]] = {}
        self._blobs: dict[tuple[str, Role, int], tuple[int, bytes]] = {}
        self._places: Numbers[Place] = Numbers()
        self._layouts: Numbers[tuple[Role, tuple[int, ...]]] = Numbers(_LAYOUTS_KEPT)
        self._max_bytes = max_bytes
        self._retention = retention or Retention()
        self._turns = Turns()
        self._kinds: set[tuple[str, Role]] = set()  # tables and roles that there were statistics in
        self._recorded = 0  # steps so far
        self._layouts_left = _LAYOUTS_PILED
        self._buffered = 0  # bytes, roughly
        self._room = min(BUFFER_BYTES, max_bytes // 16)  # for what waits
        self._limit = self._room

    def put(self, fact: _Fact) -> None:
        """Store what is known now of a module, a parameter and so on, in place of what was known of its id."""
        self._put_all((fact,))

    def put_events(self, events: Iterable[Event]) -> None:
        """Store events, each in place of the one with the same kind, subject and place."""
        self._put_all(events)

    def put_totals(self, totals: Iterable[Total]) -> None:
        """Store totals, each in place of the one with the same role and id."""
        self._put_all(totals)

    def add_step(self, step: Step) -> None:
        """Store a step.

        Thousands of them may wait. As plain tuples they are no matter to the garbage collector, which would otherwise
        look through everything that the program holds again and again.
        """
        if not self._is_mine():
            return
        with self._lock:
            position = self._turns.take(step.optimizer, step.position)
            self._steps[step.id] = (*_STEP_VALUES(step), position, self._recorded)
            self._recorded += step.recorded
            self._grow(_FACT_BYTES)

    def add_matrix(self, step: int, role: Role, ids: Sequence[int], values: bytes) -> None:
        """Store the statistics of one role at one step.

        Args:
            step: Number of the step.
            role: What the statistics describe.
            ids: Id of the parameter or output of each row, [n].
            values: Little-endian float64 [n, len(STATISTICS)], row by row.

        Raises:
            ValueError: `values` does not have n rows.
        """
        self._add_blob("matrix", step, role, ids, values)

    def add_histogram(self, step: int, role: Role, ids: Sequence[int], counts: bytes) -> None:
        """Store the histograms of one role at one step.

        Args:
            step: Number of the step.
            role: What the histograms describe.
            ids: Id of the parameter or output of each row, [n].
            counts: Little-endian uint32 [n, HISTOGRAM_BINS], row by row.

        Raises:
            ValueError: `counts` does not have n rows.
        """
        self._add_blob("histogram", step, role, ids, counts)

    def update_info(self, info: RunInfo) -> None:
        """Store what is known now of the run."""
        if not self._is_mine():
            return
        with self._lock:
            self._info = info
            self._grow(_FACT_BYTES)

    def flush(self) -> None:
        """Commit what waits. A killed process loses only what came after; a reader in the way postpones it."""
        if not self._is_mine():
            return
        with self._lock:
            if self._buffered:
                self._flush()

    def close(self) -> None:
        """Commit what waits, for the last time."""
        if not self._is_mine():
            return
        with self._lock:
            try:
                self._commit(_CLOSE_TIMEOUT_S)
                with suppress(OSError):
                    self._path.with_name(f"{self._path.name}-journal").unlink()  # empty after a commit
            except sqlite3.Error as error:
                raise _writing_error(self._path, error) from error
            finally:
                self._stop()

    def _is_mine(self) -> bool:
        return getpid() == self._owner

    def _stop(self) -> None:
        self._owner = _NOBODY
        self._forget()

    def _put_all(self, facts: Iterable[object]) -> None:
        if not self._is_mine():
            return
        with self._lock:
            for fact in facts:
                waiting = self._facts[type(fact)]
                known = len(waiting)
                waiting[_KEYS[type(fact)](fact)] = fact
                self._buffered += (len(waiting) - known) * _FACT_BYTES
            self._grow(0)

    def _add_blob(self, table: str, step: int, role: Role, ids: Sequence[int], blob: bytes) -> None:
        if not self._is_mine():
            return
        expected = len(ids) * _ROW_BYTES[table]
        if len(blob) != expected:
            msg = f"a {table} of {len(ids)} rows has {expected} bytes, not {len(blob)}"
            raise ValueError(msg)
        with self._lock:
            layout = self._layouts.of((role, tuple(ids)))
            self._blobs[table, role, step] = (layout, blob)
            self._kinds.add((table, role))
            self._grow(len(blob) + _FACT_BYTES)

    def _grow(self, size: int) -> None:
        self._buffered += size
        if self._buffered >= self._limit:
            self._flush()

    def _flush(self) -> None:
        try:
            self._commit(_BUSY_TIMEOUT_S)
        except sqlite3.Error as error:
            self._limit = self._buffered + self._room
            full = self._buffered >= _MOST_BYTES
            if full:
                self._stop()
            if full or not is_busy(error):
                raise _writing_error(self._path, error) from error

    def _commit(self, timeout_s: float) -> None:
        self._facts[Step].update((number, Step(*values)) for number, values in self._steps.items())
        self._retention.note(self._waiting(Step), self._waiting(Total), self._waiting(Activation))
        with closing(connect(self._path, "rw", nolock=self._nolock, timeout_s=timeout_s)) as connection:
            _set_up(connection)
            connection.execute("BEGIN IMMEDIATE")
            self._make_room(connection)
            rows = {fact: to_rows(fact, waiting.values(), self._places.of) for fact, waiting in self._facts.items()}
            self._write_shared(connection)
            for fact, values in rows.items():
                connection.executemany(upsert(fact), values)
            self._write_blobs(connection)
            connection.execute("COMMIT")
        self._retention.settle()
        self._forget()

    def _waiting(self, fact: type[Fact]) -> Iterable[Fact]:
        return cast("Iterable[Fact]", self._facts[fact].values())

    def _make_room(self, connection: sqlite3.Connection) -> None:
        """Take old steps out of the file, and out of what waits, until the rest of that fits."""
        self._retention.choose()
        self._take_out(connection, self._retention.unsettled)  # also of a commit that failed
        while not has_room(connection, (blob for _, blob in self._blobs.values()), self._max_bytes):
            gone = self._retention.choose(narrower=True)
            if gone is None:
                self._blobs.clear()
                return
            self._take_out(connection, gone)
        self._layouts_left -= len(self._layouts.unsaved)
        if self._layouts_left <= 0:
            remove_layouts(connection, self._layouts.known())
            self._layouts_left = _LAYOUTS_PILED

    def _take_out(self, connection: sqlite3.Connection, gone: Gone) -> None:
        remove(connection, gone, self._kinds)
        for step in gone.rows:
            self._facts[Step].pop(step, None)
        if gone.recorded:
            steps = set(gone.recorded)
            self._blobs = {key: blob for key, blob in self._blobs.items() if key[-1] not in steps}

    def _write_shared(self, connection: sqlite3.Connection) -> None:
        """Write what other rows refer to, and the run itself."""
        unsaved = self._places.unsaved
        rows = to_rows(Place, unsaved.values(), self._places.of)
        places = [(number, *row) for number, row in zip(unsaved, rows, strict=True)]
        layouts = [(number, role.value, _packed(ids)) for number, (role, ids) in self._layouts.unsaved.items()]
        connection.executemany("INSERT OR REPLACE INTO place VALUES (?, ?, ?, ?, ?, ?)", places)
        connection.executemany("INSERT OR REPLACE INTO layout VALUES (?, ?, ?)", layouts)
        if self._info is not None:
            _write_info(connection, self._info)

    def _write_blobs(self, connection: sqlite3.Connection) -> None:
        for (table, role, step), (layout, blob) in self._blobs.items():
            sql = f"INSERT OR REPLACE INTO {table} VALUES (?, ?, ?, ?)"  # noqa: S608 -- our own name
            connection.execute(sql, (step, role.value, layout, blob))

    def _forget(self) -> None:
        """Drop what waited."""
        for waiting in self._facts.values():
            waiting.clear()
        self._steps.clear()
        self._blobs.clear()
        self._places.unsaved.clear()
        self._layouts.unsaved.clear()
        self._info = None
        self._buffered = 0
        self._limit = self._room


def ensure_gitignore(folder: Path) -> None:
    """Make the folder of all runs, `.whygrad/`, and let git ignore what is in it.

    Raises:
        RunFileError: The folder cannot be made or written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with suppress(FileExistsError), (folder / ".gitignore").open("x", encoding="ascii") as file:
            file.write("*\n")
    except OSError as error:
        raise _writing_error(folder, error) from error


def _create(path: Path, info: RunInfo) -> bool:
    """Make a run file that holds only `info`; say whether its file system needs `nolock`."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch(exist_ok=False)
    except FileExistsError as error:
        msg = f"`{path}` exists already, and a run file is never written over; choose another name"
        raise RunFileError(msg) from error
    except OSError as error:
        raise _writing_error(path, error) from error
    try:
        return _create_tables(path, info)
    except sqlite3.Error as error:
        path.unlink()
        raise _writing_error(path, error) from error


def _create_tables(path: Path, info: RunInfo) -> bool:
    try:
        _write_tables(path, info, nolock=False)
    except sqlite3.OperationalError:  # nobody else knows the new file: its file system has no locks
        _write_tables(path, info, nolock=True)
        return True
    return False


def _write_tables(path: Path, info: RunInfo, *, nolock: bool) -> None:
    with closing(connect(path, "rw", nolock=nolock, timeout_s=_BUSY_TIMEOUT_S)) as connection:
        _set_up(connection)
        connection.executescript(
            f"BEGIN; PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {SCHEMA_VERSION}; {DDL}"
        )
        _write_info(connection, info)
        connection.execute("COMMIT")


def _set_up(connection: sqlite3.Connection) -> None:
    # WAL is slower here and breaks on the network file systems where training runs. The page cache outlives a killed
    # process, so that only the loss of power needs fsync. Pages that were written before the commit would wait for
    # readers one by one.
    connection.execute("PRAGMA journal_mode = TRUNCATE")
    connection.execute("PRAGMA synchronous = OFF")
    connection.execute("PRAGMA cache_spill = OFF")


def _write_info(connection: sqlite3.Connection, info: RunInfo) -> None:
    connection.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)", to_meta(info))


def _packed(ids: tuple[int, ...]) -> bytes:
    return struct.pack(f"<{len(ids)}I", *ids)


def _writing_error(path: Path, error: Exception) -> RunFileError:
    reason = error.strerror if isinstance(error, OSError) else error
    return RunFileError(f"`{path}` cannot be written ({reason}); make room, or choose another folder")
