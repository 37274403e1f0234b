"""Opening run files: read-only while they may be written, on file systems with and without locks.

What goes wrong becomes a `RunFileError` of one sentence that says what to do.
"""

from __future__ import annotations

import sqlite3
import time
import weakref
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from whygrad.errors import RunFileError
from whygrad.runfile.schema import APPLICATION_ID, SCHEMA_VERSION

READ_TIMEOUT_S = 2.0  # a commit takes milliseconds: a lock that stays this long is not our writer's
_ABANDONED_S = 60.0  # a journal that old belongs to a writer that was killed

_LOCKS_FAIL = (sqlite3.SQLITE_IOERR, sqlite3.SQLITE_PROTOCOL, sqlite3.SQLITE_PERM)
_SENTENCES = {
    sqlite3.SQLITE_NOTADB: "`{path}` is not a run file; name one that `whygrad run` wrote",
    sqlite3.SQLITE_BUSY: "`{path}` is locked by another program; close that program and try again",
    sqlite3.SQLITE_CANTOPEN: "`{path}` cannot be opened; check the permissions of the file and of its folder",
    sqlite3.SQLITE_READONLY: "`{path}` was cut off in mid-write and its folder is read-only; "
    "copy it together with `{path}-journal` to a folder that can be written",
}
_FAILURES = (sqlite3.Error, UnicodeDecodeError)  # the latter where SQLite's message quotes what is damaged
_DAMAGED = "`{path}` is damaged or cut off ({reason}); copy it again, or run the program again"


class Source:
    """A run file that is open for reading.

    It may be written at the same time: no lock outlasts `rows` or `snapshot`. One thread at a time may use it. The file
    is closed when nobody refers to the source any more.
    """

    def __init__(self, path: Path) -> None:
        """Open `path` and check that it is a run file that this version can read.

        Raises:
            RunFileError: It is not.
        """
        _check_is_file(path)
        self.path = path
        self._nolock = False
        try:
            self._connection = self._connect()
        except _FAILURES as error:
            raise _reading_error(path, error) from error
        weakref.finalize(self, self._connection.close)
        self._check_header()

    def rows(self, sql: str, parameters: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """Return all rows of a query.

        Raises:
            RunFileError: The file is locked or damaged.
        """
        try:
            return self._fetch(self._connection, sql, parameters)
        except _FAILURES as error:
            raise _reading_error(self.path, error) from error

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Let all queries in the block see the same state of the file; the writer waits meanwhile."""
        self._connection.execute("BEGIN")
        try:
            yield
        finally:
            if self._connection.in_transaction:  # some errors end it
                self._connection.execute("ROLLBACK")

    def _connect(self) -> sqlite3.Connection:
        connection = connect(self.path, "ro", timeout_s=READ_TIMEOUT_S)
        try:
            self._fetch(connection, "PRAGMA schema_version")  # the first read takes a lock
        except _FAILURES as error:
            connection.close()
            if _code(error) not in _LOCKS_FAIL:
                raise
            self._nolock = True
            return connect(self.path, "ro", nolock=True)
        return connection

    def _check_header(self) -> None:
        [(application,)] = self.rows("PRAGMA application_id")
        [(version,)] = self.rows("PRAGMA user_version")
        if application != APPLICATION_ID:
            msg = f"`{self.path}` is a SQLite database of another program; name a file that `whygrad run` wrote"
            raise RunFileError(msg)
        if version > SCHEMA_VERSION:
            msg = (
                f"`{self.path}` was written by a newer whygrad (schema {version}, this one reads up to "
                f"{SCHEMA_VERSION}); upgrade whygrad"
            )
            raise RunFileError(msg)
        self._check_size()

    def _check_size(self) -> None:
        # SQLite takes zeros for what a cut last page lacks. The file of a run in progress can only have grown since.
        [(pages, page_bytes)] = self.rows("SELECT page_count, page_size FROM pragma_page_count, pragma_page_size")
        size = _size(self.path)
        if size < pages * page_bytes:
            raise damaged(self.path, f"{size} of {pages * page_bytes} bytes")

    def _fetch(
        self, connection: sqlite3.Connection, sql: str, parameters: Sequence[object] = ()
    ) -> list[tuple[Any, ...]]:
        try:
            return connection.execute(sql, parameters).fetchall()
        except sqlite3.OperationalError as error:
            if getattr(error, "sqlite_errorcode", None) != sqlite3.SQLITE_READONLY_ROLLBACK:
                raise
            self._undo_half_commit()
            return connection.execute(sql, parameters).fetchall()

    def _undo_half_commit(self) -> None:
        """Take back the commit that a killed writer left half done, as SQLite does on a first read with write access.

        Where the writer may be alive, SQLite's locks make it wait instead; without locks, only the journal's age tells.
        """
        journal = self.path.with_name(f"{self.path.name}-journal")
        if self._nolock and not _is_abandoned(journal):
            msg = f"`{self.path}` is being written on a file system without locks; try again in a minute"
            raise RunFileError(msg)
        with closing(connect(self.path, "rw", nolock=self._nolock, timeout_s=READ_TIMEOUT_S)) as connection:
            connection.execute("SELECT count(*) FROM sqlite_master").fetchone()


def connect(path: Path, mode: str, *, nolock: bool = False, timeout_s: float = 0.0) -> sqlite3.Connection:
    """Open `path` in SQLite mode `ro` or `rw`, transactions by hand; as a URI, for only these know `nolock`."""
    uri = f"{path.absolute().as_uri()}?mode={mode}{'&nolock=1' if nolock else ''}"
    return sqlite3.connect(uri, uri=True, timeout=timeout_s, isolation_level=None, check_same_thread=False)


def damaged(path: Path, reason: object) -> RunFileError:
    """Return the error for a file whose contents make no sense."""
    return RunFileError(_DAMAGED.format(path=path, reason=reason))


def is_busy(error: sqlite3.Error) -> bool:
    """Say whether another process holds a lock."""
    return _code(error) == sqlite3.SQLITE_BUSY


def _check_is_file(path: Path) -> None:
    size = _size(path)
    if path.is_dir():
        msg = f"`{path}` is a folder; name a run file in it"
        raise RunFileError(msg)
    if size == 0:
        msg = f"`{path}` is empty: its run ended before anything was written; run the program again"
        raise RunFileError(msg)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        msg = f"`{path}` does not exist; `whygrad run` on a script makes a run file"
        raise RunFileError(msg) from None
    except OSError as error:
        msg = f"`{path}` cannot be opened ({error.strerror}); check the permissions of its folder"
        raise RunFileError(msg) from error


def _is_abandoned(journal: Path) -> bool:
    try:
        return time.time() - journal.stat().st_mtime > _ABANDONED_S
    except FileNotFoundError:
        return False


def _code(error: Exception) -> int:
    # Errors that Python's own module raises carry no code.
    code: int = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR)
    return code & 0xFF


def _reading_error(path: Path, error: Exception) -> RunFileError:
    return RunFileError(_SENTENCES.get(_code(error), _DAMAGED).format(path=path, reason=error))
