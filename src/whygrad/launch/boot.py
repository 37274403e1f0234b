"""Switching the probe on, in the process of the program, right after it has imported torch."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

from whygrad.errors import RunFileError
from whygrad.launch.options import RunOptions
from whygrad.launch.workers import Workers
from whygrad.probe.session import Session, SessionOptions
from whygrad.runfile.writer import ensure_gitignore


def activate(text: str, *, worker: int | None = None) -> Session:
    """Start the session that `text`, the options as JSON, describes.

    Where nothing can be written below the working directory, the run goes to the folder for temporary files.

    Args:
        text: The options.
        worker: Which of the processes that the program started this is; None: it is the program.

    Raises:
        OSError: No run file can be made anywhere, or not in the folder that the user chose.
        RunFileError: The same, or there is a run file already.
    """
    options = RunOptions.loads(text)
    folder = Path(options.folder)
    try:
        if not options.is_folder_chosen:
            ensure_gitignore(folder.parent)
        session = _start(options, folder, worker)
    except (OSError, RunFileError):
        if options.is_folder_chosen:
            raise
        session = _start(options, Path(tempfile.gettempdir(), folder.name), worker)
        session.note(f"`{folder}` cannot be written: the run file is in `{session.path.parent}`")
    if worker is None:
        session.undo_later(Workers(session, replace(options, folder=str(session.path.parent))).follow())
    return session


def _start(options: RunOptions, folder: Path, worker: int | None) -> Session:
    session = Session(
        SessionOptions(
            folder=folder,
            script=options.script,
            argv=options.argv,
            cwd=options.cwd,
            every=options.every,
            trace_all=options.trace_all,
            overhead=options.overhead,
            max_bytes=round(options.max_size * 10**6),
            rank=options.rank,
            world_size=options.world_size,
            file_name=None if worker is None else f"worker{worker}",
        )
    )
    session.start()
    return session
