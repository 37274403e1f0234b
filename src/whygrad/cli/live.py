"""`whygrad live [RUN]`: a run in progress, in the terminal."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path

from whygrad.cli._common import Parser, settings
from whygrad.errors import WhygradError
from whygrad.launch import console
from whygrad.run import load
from whygrad.runfile.reader import newest_run

_USAGE = "[RUN]"
_DESCRIPTION = """\
Follow a run in the terminal while it goes on: the verdict so far, every parameter with its gradient over the steps,
the loss. RUN is a run folder or one rank's file; by default the newest run below the working directory. The run is left
alone: only its file is read."""


def main(words: list[str]) -> int:
    """Show the run until `q` is pressed."""
    parser = Parser("live", _USAGE, _DESCRIPTION)
    parser.add_argument("run", nargs="?", metavar="RUN", help="a run folder or file")
    arguments = parser.parse(words)
    settings(arguments)
    if not (console.is_terminal(sys.stdout) and console.is_terminal(sys.stdin)):
        msg = "`whygrad live` needs a terminal; `whygrad report` prints the same verdict"
        raise WhygradError(msg)
    path = Path(arguments.run) if arguments.run is not None else newest_run(Path.cwd())
    try:
        from whygrad.live.app import LiveApp
    except ModuleNotFoundError as error:
        msg = "`whygrad live` needs Textual: pip install 'whygrad[live]'"
        raise WhygradError(msg) from error
    LiveApp(partial(load, path), str(path)).run()
    return 0
