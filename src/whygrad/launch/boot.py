"""Switching the probe on, in the process of the program, right after it has imported torch."""

from __future__ import annotations

import tempfile
from pathlib import Path

from whygrad.errors import RunFileError
from whygrad.launch.options import RunOptions
from whygrad.probe.session import Session, SessionOptions
from whygrad.runfile.writer import ensure_gitignore


def activate(text: str) -> Session:
    """Start the session that `text`, the options as JSON, describes.

    Where nothing can be written below the working directory, the run goes to the folder for temporary files.

    Raises:
        OSError: No run file can be made anywhere, or not in the folder that the user chose.
        RunFileError: The same, or there is a run file already.
    """
    options = RunOptions.loads(text)
    folder = Path(options.folder)
    try:
        if not options.is_folder_chosen:
            ensure_gitignore(folder.parent)
        session = _start(options, folder)
    except (OSError, RunFileError):
        if options.is_folder_chosen:
            raise
        session = _start(options, Path(tempfile.gettempdir(), folder.name))
        session.note(f"`{folder}` cannot be written: the run file is in `{session.path.parent}`")
    return session


def _start(options: RunOptions, folder: Path) -> Session:
    session = Session(
        SessionOptions(
            folder=folder,
            script=options.script,
            argv=options.argv,
            cwd=options.cwd,
            every=options.every,
            overhead=options.overhead,
            rank=options.rank,
            world_size=options.world_size,
        )
    )
    session.start()
    return session
