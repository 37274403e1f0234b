"""watch(): the probe from inside a program or a notebook.

with whygrad.watch(model, optimizer) as watched:
    for batch in batches:
        ...
print(watched.report())
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import Self

import torch
from torch import nn

from whygrad.errors import RunFileError, WhygradError
from whygrad.model import Finding
from whygrad.probe.backwards import BACKWARDS
from whygrad.probe.session import Session, SessionOptions, active_session
from whygrad.run import Run, load
from whygrad.runfile.writer import ensure_gitignore


class Watch:
    """A running observation; its results can be read at any time, also while the training goes on."""

    def __init__(self, session: Session, *, owned: bool) -> None:
        self._session = session
        self._owned = owned  # False under `whygrad run`: that session goes on when this handle is closed
        self._closed = False

    @property
    def run(self) -> Run:
        """Return what was recorded so far; `run.save(path)` keeps it, `whygrad.load(path)` reads it again."""
        if not self._closed:
            self._session.flush()
        return load(self._session.path)

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Return the findings so far, the one to act on first."""
        return self.run.findings

    def table(self) -> dict[str, list[str] | list[int] | list[float]]:
        """Return the gradient statistics of every parameter and output, one list per column."""
        return self.run.table()

    def report(self) -> str:
        """Return the verdict so far as text."""
        return self.run.report()

    def close(self, error: BaseException | None = None) -> None:
        """Stop watching; every hook, patch and mode is taken out. Closing twice is fine."""
        if self._closed:
            return
        if self._owned:
            self._session.finish(error)
            BACKWARDS.remove()
        else:
            self._session.flush()
        self._closed = True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self.close(error)

    def __repr__(self) -> str:
        state = "closed" if self._closed else "watching"
        return f"<whygrad.Watch {state}: {self._session.training.steps} steps, {self._session.path}>"

    def _repr_mimebundle_(self, **_: object) -> dict[str, str]:
        return self.run._repr_mimebundle_()


def watch(
    model: nn.Module | Sequence[nn.Module] = (),
    optimizer: torch.optim.Optimizer | None = None,
    *,
    every: int | None = None,
    overhead: float = 0.02,
    max_size: float = 256.0,
    folder: str | PathLike[str] | None = None,
) -> Watch:
    """Watch the training that follows, until the handle is closed or its `with` block ends.

    Args:
        model: The model, or several, to name and count from the start. Models that are used but not given are found
            as well.
        optimizer: An optimizer that was made before; those made later are found.
        every: Record full statistics every so many steps; None: as often as `overhead` allows, densely at first.
        overhead: Share of the run's time that whygrad may take.
        max_size: What the run file may come to, in MB, 16 or more; of a long run, old steps make room for new ones.
        folder: Where to write the run file; None: `.whygrad/<name>-<UTC time>-<pid>` in the working directory.

    Returns:
        The handle. Under `whygrad run` it reads that run.

    Raises:
        WhygradError: An argument is no model or no optimizer, or the folder can't be written.
    """
    models = (model,) if isinstance(model, nn.Module) else tuple(model)
    _check(models, optimizer)
    session = active_session()
    owned = session is None
    if session is None:
        session = _start(every, overhead, max_size, folder)
        gc.collect()  # what an earlier cell of the notebook made, and is waiting for this, is no part of the training
        for thing in gc.get_objects():  # those made before; no isinstance: it may run a program's own code
            if torch.optim.Optimizer in type(thing).__mro__:
                session.adopt_optimizer(thing)
    for each in models:
        session.adopt_model(each)
    if optimizer is not None:
        session.adopt_optimizer(optimizer)
    return Watch(session, owned=owned)


def _check(models: tuple[object, ...], optimizer: object) -> None:
    for model in models:
        if not isinstance(model, nn.Module):
            msg = f"watch() takes torch.nn.Module objects as model, not {type(model).__name__}"
            raise WhygradError(msg)
    if optimizer is not None and not isinstance(optimizer, torch.optim.Optimizer):
        msg = f"watch() takes a torch.optim.Optimizer as optimizer, not {type(optimizer).__name__}"
        raise WhygradError(msg)


def _start(every: int | None, overhead: float, max_size: float, folder: str | PathLike[str] | None) -> Session:
    script = str(getattr(sys.modules.get("__main__"), "__file__", None) or "")
    where = Path(folder) if folder is not None else _default_folder(script)
    max_bytes = round(max_size * 10**6)
    argv = tuple(sys.argv[1:])
    session = Session(SessionOptions(where, script, argv, every=every, overhead=overhead, max_bytes=max_bytes))
    try:
        session.start()
    except (OSError, RunFileError) as error:
        why = getattr(error, "strerror", None) or error
        msg = f"cannot write the run file in {where}: {why}; give watch(folder=...)"
        raise WhygradError(msg) from error
    BACKWARDS.install()
    return session


def _default_folder(script: str) -> Path:
    root = Path.cwd() / ".whygrad"
    ensure_gitignore(root)
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S%f")
    return root / f"{Path(script).stem or 'watch'}-{stamp}-{os.getpid()}"
