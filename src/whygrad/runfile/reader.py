"""Reading run files: from one file to evidence, and from a folder to its runs.

root/.whygrad/train-20261130T071200-4242/rank0.whygrad
root          a run                      its rank files
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import MISSING
from pathlib import Path
from typing import Any, TypeVar

from whygrad.errors import RunFileError
from whygrad.evidence import Evidence
from whygrad.model import (
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
    Round,
    SoftmaxCall,
    Step,
    Symmetry,
    Total,
)
from whygrad.runfile.connection import Source, damaged
from whygrad.runfile.matrices import FileMatrices
from whygrad.runfile.rows import columns_of, from_meta, from_rows
from whygrad.runfile.schema import TABLES, Table

RUNS_FOLDER = ".whygrad"
SUFFIX = ".whygrad"

_STARTED = re.compile(r"-(\d{8}T\d{4,})Z?-\d+$")  # of `<script>-<UTC time>-<pid>`
_TIME_FORMAT = "%Y%m%dT%H%M%S"

Fact = TypeVar("Fact")


def read_evidence(path: Path, *, with_steps: bool = True) -> Evidence:
    """Return what a run file says now; the run may still be going on.

    Args:
        path: A run file.
        with_steps: Read `Evidence.steps` as well, of which a long run has many.

    Raises:
        RunFileError: It is missing, foreign, damaged, locked, or of a newer schema.
    """
    source = Source(path)
    facts = [fact for fact in TABLES if with_steps or fact is not Step]
    with _nonsense_as_error(path):
        with source.snapshot():
            meta = source.rows("SELECT key, value FROM meta")
            lines = _rows(source, Place, Table("place"), lead="id, ")
            rows = {fact: _rows(source, fact, TABLES[fact]) for fact in facts}
            matrices = FileMatrices(source)
        places: dict[int, Place] = {}
        stored = from_rows(Place, [line for _, *line in lines], places.__getitem__)
        places.update(zip((number for number, *_ in lines), stored, strict=True))

        def read(fact: type[Fact]) -> tuple[Fact, ...]:
            return from_rows(fact, rows.get(fact, ()), places.__getitem__)

        return Evidence(
            info=from_meta(meta),
            modules=read(Module),
            parameters=read(Parameter),
            cuts=read(Cut),
            outputs=read(Output),
            optimizers=read(Optimizer),
            groups=read(Group),
            replicas=read(Replica),
            feeds=read(Feed),
            symmetries=read(Symmetry),
            activations=read(Activation),
            rounds=read(Round),
            happenings=read(Happening),
            clips=read(Clip),
            loss_scales=read(LossScale),
            losses=read(LossCall),
            softmaxes=read(SoftmaxCall),
            steps=read(Step),
            events=read(Event),
            totals=read(Total),
            matrices=matrices,
        )


def find_runs(root: Path) -> list[Path]:
    """Return the folders of the runs under `root/.whygrad`, the newest first.

    Raises:
        RunFileError: The folder cannot be listed.
    """
    folders = (folder for folder in _listing(root / RUNS_FOLDER) if folder.is_dir())
    return sorted((folder for folder in folders if _run_files(folder)), key=_age, reverse=True)


def newest_run(root: Path) -> Path:
    """Return the folder of the newest run under `root/.whygrad`.

    Raises:
        RunFileError: There is none.
    """
    runs = find_runs(root)
    if not runs:
        msg = f"`{root / RUNS_FOLDER}` holds no runs; `whygrad run` on a script makes one"
        raise RunFileError(msg)
    return runs[0]


def rank_files(run: Path) -> list[Path]:
    """Return the run files of a run, rank 0 first; `run` is its folder, or a single run file.

    Raises:
        RunFileError: There is none.
    """
    try:
        if run.is_file():
            return [run]
        there = run.exists()
    except OSError as error:
        raise _unlisted(run, error) from error
    files = _run_files(run)
    if not files:
        what = "holds no run files" if there else "does not exist"
        msg = f"`{run}` {what}; name a run's folder under `{RUNS_FOLDER}`, or a run file"
        raise RunFileError(msg)
    return files


@contextmanager
def _nonsense_as_error(path: Path) -> Iterator[None]:
    try:
        yield
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
        raise damaged(path, error) from error


def _rows(source: Source, fact: type, table: Table, lead: str = "") -> list[tuple[Any, ...]]:
    """Return the rows of a table; a column that an older file lacks has its field's default."""
    stored = {column[1] for column in source.rows(f"PRAGMA table_info({table.name})")}
    columns = columns_of(fact)
    defaults = [column.default for column in columns if column.name not in stored]
    if MISSING in defaults:
        msg = f"table {table.name} is incomplete"
        raise ValueError(msg)
    names = ", ".join(f'"{column.name}"' if column.name in stored else "?" for column in columns)
    sql = f"SELECT {lead}{names} FROM {table.name} ORDER BY {table.order}"  # noqa: S608 -- our own names
    return source.rows(sql, defaults)


def _listing(folder: Path) -> list[Path]:
    try:
        return list(folder.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise _unlisted(folder, error) from error


def _unlisted(folder: Path, error: OSError) -> RunFileError:
    return RunFileError(f"`{folder}` cannot be listed ({error.strerror}); check its permissions")


def _run_files(folder: Path) -> list[Path]:
    files = (file for file in _listing(folder) if file.suffix == SUFFIX and file.is_file())
    return sorted(files, key=_natural)


def _natural(file: Path) -> list[str | int]:
    parts: Iterable[str] = re.split(r"(\d+)", file.name)
    return [int(part) if part.isdecimal() else part for part in parts]


def _age(run: Path) -> tuple[str, float]:
    """Return when the run started, as far as its folder's name says so, and when it was last written."""
    written = max((file.stat().st_mtime for file in _run_files(run)), default=0.0)
    started = _STARTED.search(run.name)
    return started[1] if started else time.strftime(_TIME_FORMAT, time.gmtime(written)), written
