"""The command line: `whygrad COMMAND ...`, one module per command, imported when it is the one that is wanted.

A command's module has `main(words)`, which reads its own part of the command line and returns the exit status:
0 nothing found at the level asked for, 1 findings, 2 usage or unreadable input.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib import import_module

from whygrad._version import __version__
from whygrad.errors import WhygradError

COMMANDS = {
    "run": "watch a training program, then say what does not learn, and why",
    "report": "say it again, from the run file",
    "html": "show it as one page, offline",
    "live": "follow a run in progress, in the terminal",
    "compare": "set two runs side by side",
    "rule": "explain a rule: what it looks for, why, and what to change",
    "demo": "see gradients vanish: a small network with ReLU, then with sigmoid",
}

Outcome = int | Callable[[], int]
"""The status of a command; or what is left to do, where a program of the user's is to run."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit status."""
    words = sys.argv[1:] if argv is None else list(argv)
    outcome = _guarded(words)
    # Called here, outside the guard: what the program raises is not ours to catch.
    return outcome if isinstance(outcome, int) else outcome()


def _guarded(words: list[str]) -> Outcome:
    """Run a command, such that what goes wrong in it ends in one sentence and status 2."""
    try:
        return _dispatch(words)
    except WhygradError as error:
        return _refuse(str(error))
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # The reader of our output has left, as `head` does; nothing more can be written, not even at exit.
        with suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:
        if os.environ.get("WHYGRAD_DEBUG"):
            raise
        return _refuse(f"internal error: {type(error).__name__}: {error} (WHYGRAD_DEBUG=1 shows where)")


def _refuse(sentence: str) -> int:
    print(f"whygrad: {sentence}", file=sys.stderr)
    return 2


def _dispatch(words: list[str]) -> Outcome:
    command = words[0] if words else "--help"
    if command in COMMANDS:
        outcome: Outcome = import_module(f"whygrad.cli.{command}").main(words[1:])
        return outcome
    if command in ("-h", "--help"):
        print(_help())
        return 0
    if command in ("-V", "--version"):
        print(f"whygrad {__version__}")
        return 0
    raise WhygradError(_unknown(command))


def _unknown(command: str) -> str:
    from whygrad.config import nearest

    if command.startswith("-"):
        return f"there is no option `{command}` (see whygrad --help)"
    hint = f": did you mean `whygrad run {command}`?" if command.endswith(".py") else nearest(command, COMMANDS)
    return f"there is no command `{command}`{hint}"


def _help() -> str:
    commands = "\n".join(f"  {name:<9} {purpose}" for name, purpose in COMMANDS.items())
    return f"""\
usage: whygrad COMMAND ...

Why does this layer not learn? Run a PyTorch training program under whygrad, read the cause.

  whygrad run train.py --lr 0.1

commands:
{commands}

whygrad COMMAND --help says more; whygrad --version says which one this is."""
