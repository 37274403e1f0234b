"""The processes of one training: which of them this is, and which folder they share.

torchrun starts one process per rank and tells each its place in the environment (RANK, WORLD_SIZE, ...). Each writes a
run file of its own; the folder's name comes from what the ranks of one machine have in common, the agent that started
them.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from whygrad.errors import RunFileError

RUNS_FOLDER = ".whygrad"
"""Holds all runs of a working directory, a folder each; `runfile.reader` looks for them there."""

_TIME = "%Y%m%dT%H%M%S"
_POLL_S = 0.1
_CLAIMED = ".spoken"  # made in a run's folder by the rank that says the verdict


def rank() -> int:
    """Return the number of this process in the training; 0 where there is only one."""
    return _environment_number("RANK", 0)


def world_size() -> int:
    """Return the number of processes of the training."""
    return _environment_number("WORLD_SIZE", 1)


def local_world_size() -> int:
    """Return the number of processes of the training on this machine."""
    return _environment_number("LOCAL_WORLD_SIZE", 1)


def _environment_number(name: str, default: int) -> int:
    text = os.environ.get(name, "")
    return int(text) if text.isdecimal() else default


def run_file(folder: Path) -> Path:
    """Return where in the folder of a run this rank writes."""
    return folder / f"rank{rank()}.whygrad"


def folder_name(stem: str) -> str:
    """Return `<stem>-<UTC time>-<pid>`, of this process or of the agent that started it and the other ranks.

    An agent that starts its ranks again counts on: `train.restart1-...`.
    """
    if "RANK" not in os.environ:
        return f"{stem}-{time.strftime(_TIME, time.gmtime())}-{os.getpid()}"
    agent = os.getppid()
    restarts = _environment_number("TORCHELASTIC_RESTART_COUNT", 0)
    again = f".restart{restarts}" if restarts else ""
    return f"{stem}{again}-{_started(agent) or 'port' + os.environ.get('MASTER_PORT', '')}-{agent}"


def _started(pid: int) -> str:
    """Return the UTC time at which a process was started, the same in every process that asks; "" where unknown."""
    try:
        # Field 22, in ticks since the machine was booted; the name, field 2, may hold spaces and parentheses.
        after_name = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2]
        ticks = int(after_name.split()[19])
        lines = Path("/proc/stat").read_text(encoding="utf-8").splitlines()
        [booted] = [int(line.split()[1]) for line in lines if line.startswith("btime ")]
    except (OSError, ValueError, IndexError):
        return ""
    return time.strftime(_TIME, time.gmtime(booted + ticks // os.sysconf("SC_CLK_TCK")))


def wait_for(count: int, folder: Path, *, patience_s: float, hurry: Sequence[object] = ()) -> None:
    """Wait until that many ranks, this one included, have completed their files in `folder`, but not for ever.

    Args:
        count: Of ranks on this machine.
        folder: Of the run.
        patience_s: How long to wait at most.
        hurry: Ends the wait as soon as there is something in it.
    """
    ended: set[Path] = set()

    def all_ended() -> bool:
        ended.update(file for file in folder.glob("rank*.whygrad") if file not in ended and _has_ended(file))
        return len(ended) >= count

    _wait_until(all_ended, patience_s, hurry)


def wait_for_first(folder: Path, *, patience_s: float, hurry: Sequence[object] = ()) -> bool:
    """Wait until rank 0 has completed its file in `folder`, but not for ever; return whether it has."""
    return _wait_until(lambda: _has_ended(folder / "rank0.whygrad"), patience_s, hurry)


def _wait_until(is_done: Callable[[], bool], patience_s: float, hurry: Sequence[object]) -> bool:
    deadline = time.monotonic() + patience_s
    while not is_done():
        if hurry or time.monotonic() > deadline:
            return False
        time.sleep(_POLL_S)
    return True


def _has_ended(file: Path) -> bool:
    """Return whether a rank has completed its file."""
    from whygrad.runfile.reader import read_evidence

    try:
        return read_evidence(file, with_steps=False).info.ended
    except RunFileError:  # it is just being made
        return False


def claim(folder: Path) -> bool:
    """Return whether this rank is the first that asks to say the verdict on a run."""
    try:
        os.close(os.open(folder / _CLAIMED, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
    except FileExistsError:
        return False
    except OSError:  # a folder that became read-only: to be heard twice is better than not at all
        return True
    return True
