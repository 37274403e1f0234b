"""From `whygrad run` to the running program."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from whygrad.config import FailOn
from whygrad.launch.options import RunOptions
from whygrad.launch.target import Target

_PACKAGE = Path(__file__).parents[1]
_SHIM = str(Path(__file__).with_name("shim"))


def start(target: Target, options: RunOptions) -> int:
    """Run the program: in place of this process where that is possible, else in it.

    Returns:
        The status of a program that ran in this process and ended without `SystemExit`.

    Whatever the program raises passes through.
    """
    if can_replace(options):
        command = [sys.executable, *interpreter_flags(sys.orig_argv), *target.command]
        with suppress(OSError):  # the environment plus the arguments are longer than the system allows
            os.execve(sys.executable, command, environment(os.environ, options))
    from whygrad.launch.runner import run
    from whygrad.launch.standby import Standby

    return run(target, Standby(str(_PACKAGE), options.dumps()))


def can_replace(options: RunOptions) -> bool:
    """Return whether the start-up shim will work in an interpreter that takes the place of this one.

    It does not where the interpreter ignores PYTHONPATH or `sitecustomize` (-E, -I, -S), nor on Windows, where a
    process cannot be replaced. A debugger or profiler would be left behind. And the shim never learns the status of a
    program that ends by `sys.exit`, which `--fail-on` has to know.
    """
    return (
        os.name == "posix"
        and bool(sys.executable)
        and not (sys.flags.ignore_environment or sys.flags.no_site)
        and sys.gettrace() is None
        and sys.getprofile() is None
        and os.pathsep not in _SHIM
        and options.fail_on is FailOn.NEVER
        and os.environ.get("WHYGRAD_LAUNCHER") != "runner"
    )


def environment(environ: Mapping[str, str], options: RunOptions) -> dict[str, str]:
    """Return the environment that brings up the shim; the shim itself takes back what is added here."""
    pythonpath = environ.get("PYTHONPATH")
    kept = {} if pythonpath is None else {"WHYGRAD_PYTHONPATH": pythonpath}
    # An empty entry would stand for the working directory.
    entries = [_SHIM, pythonpath] if pythonpath else [_SHIM]
    return {**environ, "PYTHONPATH": os.pathsep.join(entries), "WHYGRAD_RUN": options.dumps(), **kept}


def interpreter_flags(command_line: Sequence[str]) -> tuple[str, ...]:
    """Return the options of the interpreter itself, as they stand on its command line before what it runs.

    `python -W error -um whygrad run train.py` has `-W error -u`.
    """
    return tuple(_flags(iter(command_line[1:])))


def _flags(words: Iterator[str]) -> Iterator[str]:
    for word in words:
        if not word.startswith("-") or word == "-":
            return
        if word == "--check-hash-based-pycs":
            yield from (word, next(words))
            continue
        letters = "" if word.startswith("--") else word[1:]
        for position, letter in enumerate(letters, start=1):
            if letter in "cm":  # the rest is what to run
                if position > 1:
                    yield word[:position]
                return
            if letter in "WX":  # the rest is its value
                yield word
                if position == len(letters):
                    yield next(words)
                break
        else:
            yield word
