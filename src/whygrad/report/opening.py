"""From a path to the evidence of every rank of a run."""

from __future__ import annotations

from dataclasses import dataclass
from os import PathLike
from pathlib import Path

from whygrad.errors import RunFileError
from whygrad.evidence import Evidence
from whygrad.runfile.reader import newest_run, rank_files, read_evidence
from whygrad.uncollected import uncollected


@dataclass(frozen=True, slots=True)
class Opened:
    """What could be read of a run."""

    path: Path
    ranks: tuple[Evidence, ...]  # by rank; at least one
    unread: tuple[str, ...]  # why the files of further ranks could not be read, a sentence each


@uncollected()
def open_run(path: str | PathLike[str] | None) -> Opened:
    """Read the files of a run.

    Args:
        path: A run folder, one rank's file (then that rank alone is read), or None: the newest run under `.whygrad` in
            the working directory.

    Raises:
        RunFileError: There is no such run, or no file of it can be read.
    """
    run = newest_run(Path.cwd()) if path is None else Path(path)
    ranks: list[Evidence] = []
    errors: list[RunFileError] = []
    for file in rank_files(run):
        try:
            ranks.append(read_evidence(file))
        except RunFileError as error:
            errors.append(error)
    if not ranks:
        raise errors[0]
    ranks = [evidence for evidence in ranks if _trained(evidence)] or ranks  # not those that serve the ones that train
    ranks.sort(key=lambda evidence: evidence.info.rank)
    return Opened(run, tuple(ranks), tuple(map(str, errors)))


def _trained(evidence: Evidence) -> bool:
    info = evidence.info
    return bool(info.steps or info.backwards or info.grad_calls or (info.raised and info.world_size > 1))
