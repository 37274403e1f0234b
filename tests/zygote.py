"""Run many programs that need torch without importing it for each.

Importing torch takes seconds, most test programs take hundredths. A zygote is a process that has imported it once and
forks for every call; the child is as good as a fresh process for a program that sets its own seeds. The parent only
imports: it starts no thread, so that forking is safe.
"""

from __future__ import annotations

import faulthandler
import importlib
import json
import os
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, NoReturn, Self

from tests.programs import Ran

ROOT = Path(__file__).parent.parent
MODULES = ("torch", "torch._dynamo")  # optimizers import the second when they are made: two more seconds


class Zygote:
    """A process that calls functions in forks of itself.

    Args:
        modules: What it imports before the first call, and every fork then has.
    """

    def __init__(self, modules: Sequence[str] = MODULES) -> None:
        self._last_words = ""
        self._process = subprocess.Popen(
            [sys.executable, "-c", "from tests.zygote import serve; serve()", *modules],
            cwd=ROOT,
            env={**os.environ, "OMP_NUM_THREADS": "1", "NO_COLOR": "1"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def call(self, function: str, arguments: Sequence[str], folder: Path, *, timeout_s: float = 60) -> Ran:
        """Call a function with a list of strings in a fork, in `folder`, and wait for its end.

        Args:
            function: "module:name"; what it returns is the exit status, None meaning 0.
            arguments: The list it is called with.
            folder: The fork's working directory.
            timeout_s: Seconds after which the fork prints where it is and ends with status 1.

        Raises:
            RuntimeError: The zygote itself has ended; the message is what it printed.
        """
        with tempfile.TemporaryDirectory(prefix="zygote-") as scratch:
            stdout, stderr = Path(scratch, "stdout"), Path(scratch, "stderr")
            request = {
                "function": function,
                "arguments": list(arguments),
                "folder": str(folder),
                "stdout": str(stdout),
                "stderr": str(stderr),
                "timeout_s": timeout_s,
            }
            status = self._ask(json.dumps(request))
            return Ran(status, stdout.read_text(errors="replace"), stderr.read_text(errors="replace"), folder)

    def _ask(self, request: str) -> int:
        reply = self._exchange(request)
        if not reply:
            self._last_words = self._last_words or self._process.communicate()[1]
            msg = f"the zygote ended with status {self._process.returncode}: {self._last_words}"
            raise RuntimeError(msg)
        return int(reply)

    def _exchange(self, request: str) -> str:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            print(request, file=self._process.stdin, flush=True)
            return self._process.stdout.readline()
        except (BrokenPipeError, ValueError):  # it has ended; an earlier call noticed, and closed the pipes
            return ""

    def close(self) -> None:
        """End the process."""
        self._process.communicate()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def serve() -> None:
    """Import the modules named on the command line, then answer requests: a line of JSON in, an exit status out."""
    for module in sys.argv[1:]:
        importlib.import_module(module)
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            _be_child(json.loads(line))
        _, ended = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(ended), flush=True)


def _be_child(request: dict[str, Any]) -> NoReturn:
    _redirect(0, os.devnull, os.O_RDONLY)
    _redirect(1, request["stdout"], os.O_WRONLY | os.O_CREAT)
    _redirect(2, request["stderr"], os.O_WRONLY | os.O_CREAT)
    faulthandler.dump_traceback_later(request["timeout_s"], exit=True)
    status = 1
    try:
        os.chdir(request["folder"])
        module, name = request["function"].split(":")
        status = getattr(importlib.import_module(module), name)(request["arguments"]) or 0
    except SystemExit as stop:
        status = _status_of(stop)
    except BaseException:  # as the interpreter does at the end of a program
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def _redirect(descriptor: int, path: str, flags: int) -> None:
    opened = os.open(path, flags)
    os.dup2(opened, descriptor)
    os.close(opened)


def _status_of(stop: SystemExit) -> int:
    if stop.code is None or isinstance(stop.code, int):
        return stop.code or 0
    print(stop.code, file=sys.stderr)
    return 1
