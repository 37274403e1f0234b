"""The statistics of single steps, read from a run file when they are asked for."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from whygrad.model import HISTOGRAM_BINS, STATISTICS, Role, Statistics
from whygrad.runfile.connection import Source, damaged
from whygrad.runfile.filling import filled

# What stays in memory: 100 MB at worst, and at least the samples of two roles, which rules compare tensor by tensor.
_CACHED_ROWS = 250_000
_CACHED_MATRICES = 64


class FileMatrices:
    """Fulfils `evidence.Matrices` for an open run file.

    Steps that are recorded after it was made are left out, so that it agrees with facts read at that moment.
    """

    def __init__(self, source: Source) -> None:
        self._source = source
        self._last = {role: _last_step(source, role) for role in Role}
        self._steps: dict[Role, tuple[int, ...]] = {}
        self._cache: dict[tuple[str, int, Role], dict[int, Any]] = {}  # longest unused first
        self._cached_rows = 0

    def steps(self, role: Role) -> tuple[int, ...]:
        """Return the ids of the recorded steps that have statistics in this role, ascending."""
        if role not in self._steps:
            sql = "SELECT step FROM matrix WHERE role = ? AND step <= ? ORDER BY step"
            self._steps[role] = tuple(step for (step,) in self._source.rows(sql, (role.value, self._last[role])))
        return self._steps[role]

    def read(self, step: int, role: Role) -> Mapping[int, Statistics]:
        """Return id of the parameter or output -> statistics at that step; empty where nothing was recorded.

        Raises:
            RunFileError: The file is locked or damaged.
        """
        return self._cached("matrix", step, role)

    def histogram(self, step: int, role: Role) -> Mapping[int, tuple[int, ...]]:
        """Return id -> counts of the 32 log2-size bins at that step; empty where nothing was recorded.

        Raises:
            RunFileError: The file is locked or damaged.
        """
        return self._cached("histogram", step, role)

    def _cached(self, table: str, step: int, role: Role) -> dict[int, Any]:
        key = (table, step, role)
        found = self._cache.pop(key, None)
        if found is None:
            found = self._load(table, step, role)
            self._cached_rows += len(found)
        self._cache[key] = found
        while len(self._cache) > _CACHED_MATRICES and self._cached_rows > _CACHED_ROWS:
            self._cached_rows -= len(self._cache.pop(next(iter(self._cache))))
        return found

    def _load(self, table: str, step: int, role: Role) -> dict[int, Any]:
        column, unpack = _TABLES[table]
        sql = (
            f"SELECT ids, {column} FROM {table} JOIN layout ON layout.id = layout "  # noqa: S608 -- our own names
            f"WHERE {table}.role = ? AND step = ?"
        )
        rows = self._source.rows(sql, (role.value, step))
        try:
            return dict(zip(_ids(rows[0][0]), unpack(rows[0][1]), strict=True)) if rows else {}
        except (ValueError, TypeError, struct.error) as error:
            raise damaged(self._source.path, error) from error


def _last_step(source: Source, role: Role) -> int:
    [(last,)] = source.rows("SELECT max(step) FROM matrix WHERE role = ?", (role.value,))
    return -1 if last is None else int(last)


def _ids(blob: bytes) -> tuple[int, ...]:
    return struct.unpack(f"<{len(blob) // 4}I", blob)


def _statistics(blob: bytes) -> Iterable[Statistics]:
    numbers = struct.unpack(f"<{len(blob) // 8}d", blob)
    columns = [numbers[at :: len(STATISTICS)] for at in range(len(STATISTICS))]
    return filled(Statistics, columns, len(columns[-1]))


def _counts(blob: bytes) -> Iterable[tuple[int, ...]]:
    return struct.iter_unpack(f"<{HISTOGRAM_BINS}I", blob)


_TABLES: dict[str, tuple[str, Callable[[bytes], Iterable[Any]]]] = {
    "matrix": ("statistics", _statistics),
    "histogram": ("counts", _counts),
}
