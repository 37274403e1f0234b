"""Room in a run file: SQLite puts the pages of what was deleted to new use, so that the file grows no further."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable

from whygrad.model import Role
from whygrad.runfile.retention import Gone

_PAGE_BYTES = 4096
_ROW_BYTES = 64  # around a blob, index and all
_RESERVE = 1 / 16  # of the largest size: for facts, which are not thinned, and for pages that are half full


def has_room(connection: sqlite3.Connection, blobs: Iterable[bytes], max_bytes: int) -> bool:
    """Return whether blobs fit into the file without making it larger than it may be."""
    [(pages, free, page_bytes)] = connection.execute(
        "SELECT page_count, freelist_count, page_size FROM pragma_page_count, pragma_freelist_count, pragma_page_size"
    )
    room = max_bytes * (1 - _RESERVE) - (pages - free) * page_bytes
    return bool(sum(map(_stored_size, blobs)) <= room)


def remove(connection: sqlite3.Connection, gone: Gone, kinds: Iterable[tuple[str, Role]]) -> None:
    """Take steps out of the file.

    Args:
        connection: In a transaction.
        gone: Which steps.
        kinds: The tables and roles that the file has statistics in.
    """
    steps = [(step,) for step in sorted(gone.recorded)]  # those that lie on one page together
    for table, role in kinds:
        connection.executemany(f"DELETE FROM {table} WHERE role = '{role.value}' AND step = ?", steps)  # noqa: S608 -- our own
    connection.executemany("DELETE FROM step WHERE id = ?", [(step,) for step in gone.rows])


def remove_layouts(connection: sqlite3.Connection, known: Iterable[int]) -> None:
    """Take out the layouts that no matrix and no histogram has, except those that the next ones may have."""
    used = "SELECT layout FROM matrix UNION SELECT layout FROM histogram"
    unused = connection.execute(f"SELECT id FROM layout WHERE id NOT IN ({used})").fetchall()  # noqa: S608 -- our own
    kept = set(known)
    connection.executemany("DELETE FROM layout WHERE id = ?", [row for row in unused if row[0] not in kept])


def _stored_size(blob: bytes) -> int:
    """Return what a blob takes at most: a large one has pages of its own, small ones share one."""
    on_a_page = _PAGE_BYTES // (len(blob) + _ROW_BYTES)
    return _PAGE_BYTES // on_a_page if on_a_page else len(blob) + _PAGE_BYTES
