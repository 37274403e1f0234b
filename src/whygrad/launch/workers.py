"""Processes that the program starts itself to train in, by `torch.multiprocessing.spawn` or `Process(target=...)`.

Each writes a run file of its own beside the program's, `worker0.whygrad`, `worker1.whygrad`, ... For the moment in
which a process is started its target is replaced by one that switches the probe on first, whether the process is
spawned, which pickles the target, or forked. Processes of a DataLoader, and those without torch, are left alone.
"""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from importlib.machinery import PathFinder
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import TYPE_CHECKING, Any

from whygrad.launch.options import RunOptions

if TYPE_CHECKING:
    from whygrad.probe.session import Session

MAX_WORKERS = 64
_PACKAGE = Path(__file__).parents[1]


@dataclass(frozen=True, slots=True)
class Watched:
    """Stands for the target of a process, in that process."""

    target: Callable[..., object]
    options: str  # `RunOptions` as JSON
    number: int  # of the process

    def __call__(self, *args: Any, **kwargs: Any) -> object:
        """Run the target with the probe on."""
        session = self._start() if "torch" in sys.modules else None
        try:
            result = self.target(*args, **kwargs)
        except BaseException as error:
            if error.__traceback__ is not None:
                error.__traceback__ = error.__traceback__.tb_next  # a bare `raise` adds no entry: ours is gone
            if session is not None:
                session.finish(_cause(error))
            raise
        if session is not None:
            session.finish()
        return result

    def _start(self) -> Session | None:
        try:
            from whygrad.launch.boot import activate

            return activate(self.options, worker=self.number)
        except Exception:
            return None  # the program goes on, not watched; `whygrad report` has one rank less


@dataclass(slots=True)
class Workers:
    """Has the processes watched that a program starts."""

    session: Session
    options: RunOptions
    pid: int = field(default_factory=os.getpid)
    count: int = 0

    def follow(self) -> Callable[[], None]:
        """Begin, and return the function that ends it."""
        start = BaseProcess.start

        prepare = self._prepare

        @functools.wraps(start)
        def started(self: BaseProcess) -> None:
            with suppress(Exception):  # the process is then not watched
                prepare(self)
            try:
                start(self)
            except BaseException as error:
                if error.__traceback__ is not None:
                    error.__traceback__ = error.__traceback__.tb_next
                raise

        def undo() -> None:
            if BaseProcess.start is started:
                BaseProcess.start = start  # type: ignore[method-assign]

        BaseProcess.start = started  # type: ignore[method-assign]
        return undo

    def _prepare(self, process: BaseProcess) -> None:
        target: Any = getattr(process, "_target", None)
        if os.getpid() == self.pid and self.count < MAX_WORKERS and self._trains(target) and _can_import(process):
            options = replace(self.options, rank=self.count, num_args=0)
            process._target = Watched(target, options.dumps(), self.count)  # type: ignore[attr-defined]
            self.count += 1

    def _trains(self, target: object) -> bool:
        """Return whether a process runs a function of the program, by itself or by `torch.multiprocessing.spawn`."""
        spawning = sys.modules.get("torch.multiprocessing.spawn")
        if target is not None and target is getattr(spawning, "_wrap", None):
            return True
        code = getattr(getattr(target, "__func__", target), "__code__", None)
        return code is not None and self.session.user.owns(code)


def _can_import(process: BaseProcess) -> bool:
    """Return whether the new process will find this very whygrad; a forked one has it already."""
    if getattr(process, "_start_method", None) == "fork":
        return True
    spec = PathFinder.find_spec("whygrad", sys.path)
    return spec is not None and spec.origin is not None and Path(spec.origin).parent == _PACKAGE


def _cause(error: BaseException) -> BaseException | None:
    """Return the exception that ended a process: `torch.multiprocessing.spawn` turns it into an exit."""
    cause = error.__context__ if isinstance(error, SystemExit) else error
    return cause if isinstance(cause, Exception) else None
