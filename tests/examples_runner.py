"""Run a rule's example under the probe in hundredths of a second, and read what whygrad finds in it.

The example runs in a fork of a process that has imported torch, as `__main__`, with every step recorded, so that what
is found does not depend on how fast the machine is. One that says `# torchrun --nproc-per-node=2 train.py` runs in a
fork for each rank.
"""

from __future__ import annotations

import atexit
import functools
import json
import os
import re
import socket
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from tests.programs import SCRIPT, Ran
from tests.zygote import MODULES, Zygote
from whygrad.report import json_output
from whygrad.run import Run, load

RUN_FOLDER = "run"
_LAUNCH = re.compile(r"^# torchrun --nproc-per-node=(\d+) ", re.MULTILINE)


def run_example(source: str, tmp_path: Path) -> list[dict[str, Any]]:
    """Run a program under whygrad in `tmp_path` and return its findings as the findings file gives them.

    Raises:
        AssertionError: whygrad left no run file; the message shows what the program printed.
    """
    findings: list[dict[str, Any]] = json.loads(json_output.render(watch_example(source, tmp_path)))["findings"]
    return findings


def watch_example(source: str, tmp_path: Path) -> Run:
    """Run a program under whygrad in `tmp_path` and return the run that was recorded.

    Raises:
        AssertionError: whygrad left no run file; the message shows what the program printed.
    """
    ran = start_example(source, tmp_path)
    folder = tmp_path / RUN_FOLDER
    assert folder.is_dir(), f"no run file; status {ran.status}, stderr:\n{ran.stderr}"
    return load(folder)


def start_example(source: str, tmp_path: Path) -> Ran:
    """Run a program under whygrad in `tmp_path` and return how it ended and what it printed."""
    (tmp_path / SCRIPT).write_text(source, encoding="utf-8")
    return _zygote().call(f"{__name__}:watch", [SCRIPT, RUN_FOLDER], tmp_path)


@functools.cache
def _zygote() -> Zygote:
    zygote = Zygote((*MODULES, "whygrad.probe.session"))
    atexit.register(zygote.close)
    return zygote


def watch(arguments: Sequence[str]) -> None:
    """Run a script as `__main__` with the probe on, writing to a run folder: the life of a fork."""
    from whygrad.probe.session import Session, SessionOptions

    script, folder = arguments
    path = Path(script).resolve()
    launched = _LAUNCH.search(path.read_text(encoding="utf-8"))
    world_size = 1 if launched is None else int(launched[1])
    rank, others = _fork_ranks(world_size)
    session = Session(SessionOptions(folder=Path(folder), script=script, every=1, rank=rank, world_size=world_size))
    session.start()
    try:
        _run_as_main(path)
    except BaseException as error:
        session.finish(error)
        raise
    else:
        session.finish()
    finally:
        for process in others:
            os.waitpid(process, 0)
    if rank:
        os._exit(0)


def _fork_ranks(world_size: int) -> tuple[int, list[int]]:
    """Fork this process once for each further rank; return the rank of the one that returns, and rank 0 the others."""
    if world_size == 1:
        return 0, []
    with socket.socket() as free:
        free.bind(("localhost", 0))
        os.environ.update(MASTER_ADDR="localhost", MASTER_PORT=str(free.getsockname()[1]), WORLD_SIZE=str(world_size))
    others: list[int] = []
    for rank in range(1, world_size):
        process = os.fork()
        if process == 0:
            os.environ["RANK"] = str(rank)
            return rank, []
        others.append(process)
    os.environ["RANK"] = "0"
    return 0, others


def _run_as_main(path: Path) -> None:
    main = ModuleType("__main__")
    main.__file__ = str(path)
    sys.modules["__main__"] = main
    sys.argv = [str(path)]
    sys.path.insert(0, str(path.parent))
    exec(compile(path.read_bytes(), str(path), "exec"), vars(main))  # noqa: S102 - running it is the point
