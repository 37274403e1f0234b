"""`whygrad run --live`: the live view around a program that runs as a process of its own.

What the program prints is kept and written out when the view is closed: first its stdout, then its stderr with the
verdict. The view may be closed early; the program goes on.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import IO

from whygrad.live.app import LiveApp
from whygrad.run import load

_CHUNK = 1 << 16


def run_around(words: Sequence[str], folder: Path) -> int:
    """Run `whygrad run WORDS` and show it until it is closed; return the program's status.

    Args:
        words: The command line after `run`, with the run folder and without `--live`.
        folder: The run folder.
    """
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        command = [sys.executable, "-m", "whygrad", "run", *words]
        with subprocess.Popen(command, stdout=out, stderr=err, stdin=subprocess.DEVNULL) as program:
            try:
                LiveApp(partial(load, folder), str(folder)).run()
                status = program.wait()
            except BaseException:
                program.send_signal(signal.SIGINT)
                raise
        _write_out(out, sys.stdout)
        _write_out(err, sys.stderr)
    return status


def _write_out(kept: IO[bytes], stream: IO[str]) -> None:
    kept.seek(0)
    with suppress(BrokenPipeError):
        while piece := kept.read(_CHUNK):
            stream.buffer.write(piece)  # type: ignore[attr-defined]
        stream.flush()
