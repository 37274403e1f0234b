"""The end of a program: complete the run file, judge it, say the verdict.

It runs as the last exit handler: the program's own handlers and threads are done, its traceback is printed, and its
status is settled. Nothing that fails here may change any of that.
"""

from __future__ import annotations

import os
import signal
import sys
import warnings
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from whygrad._version import __version__
from whygrad.config import FailOn
from whygrad.errors import WhygradError
from whygrad.launch import console, ranks
from whygrad.launch.options import RunOptions

if TYPE_CHECKING:
    from whygrad.probe.session import Session

NO_TORCH = "the program never imported torch, so there is no training to explain."
PATIENCE_S = 10.0  # how long rank 0 waits for the others
CRASH_PATIENCE_S = 3.0  # the same where an error ended this rank: others may wait for it in a collective, for ever


@dataclass(frozen=True, slots=True)
class Ending:
    """How the program ended, and what is there to judge it by."""

    session: Session | None  # None: torch was never imported, or the probe could not be started
    problem: Exception | None = None  # why it could not be started
    error: BaseException | None = None  # the exception that ended the program
    status: int | None = None  # the exit status; None: only the interpreter knows


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is said at the end of a run."""

    text: str
    findings_file: str
    fails: bool = False  # a finding reaches the level of `--fail-on`


def finish(text: str, ending: Ending) -> None:
    """Say the verdict on the program that has just ended; `text` holds the options as JSON."""
    options = RunOptions.loads(text)
    try:
        _make_own(options)
        hold: AbstractContextManager[list[int]] = held_back() if options.world_size > 1 else nullcontext([])
        with hold as received:
            verdict = _judge(options, ending, received)
            if verdict is not None:
                _publish(verdict, options, ending.status)
    except KeyboardInterrupt:
        if not options.quiet:
            console.say("whygrad: interrupted; `whygrad report` says the verdict")
    if type(ending.error) is KeyboardInterrupt:
        _keep_interrupted()


def _make_own(options: RunOptions) -> None:
    """Take the process over: from here on imports, paths and warnings are whygrad's, no longer the program's."""
    script = os.path.join(options.cwd, options.script)
    of_program = {"", options.cwd, os.path.dirname(os.path.realpath(script))}
    package = str(Path(__file__).parents[2])
    sys.path[:] = [*(entry for entry in sys.path if entry not in of_program), package]
    warnings.simplefilter("ignore")
    with suppress(OSError):
        os.chdir(options.cwd)


def _judge(options: RunOptions, ending: Ending, received: list[int]) -> Verdict | None:
    """Return the verdict; None where it is another rank's to judge.

    That is rank 0, unless another rank ended by an error while rank 0 runs on: it may wait for that one for ever, and
    will be killed when that one is gone.

    Args:
        options: How the program was watched.
        ending: How it ended.
        received: Grows when this process is asked to end.
    """
    try:
        if ending.session is not None:
            ending.session.finish(ending.error)
        if not _is_speaker(options, ending, received) or not _is_wanted(options):
            return None
        if ending.problem is not None:
            return _failure(options, ending, ending.problem)
        if ending.session is None:
            return _nothing(options, ending, NO_TORCH)
        return _of_run(options, ending.session.path.parent)
    except Exception as error:
        return _failure(options, ending, error)


def _publish(verdict: Verdict, options: RunOptions, status: int | None) -> None:
    if options.json is not None:
        try:
            Path(options.json).write_text(verdict.findings_file, encoding="utf-8")
        except OSError as error:
            console.say(f"whygrad: `{options.json}` cannot be written: {error.strerror}")
    if not options.quiet:
        console.say(verdict.text)
    if verdict.fails and status == 0:
        _fail()


def _is_speaker(options: RunOptions, ending: Ending, received: list[int]) -> bool:
    """Return whether this rank is the one to judge, after it has waited for the others, but not for ever."""
    if ending.session is None:
        return options.rank == 0
    folder = ending.session.path.parent
    if options.rank == 0:
        patience_s = PATIENCE_S if ending.error is None else CRASH_PATIENCE_S
        ranks.wait_for(options.local_world_size, folder, patience_s=patience_s, hurry=received)
        return options.world_size == 1 or ranks.claim(folder)
    if ending.error is None or type(ending.error) is KeyboardInterrupt:
        return False
    return not ranks.wait_for_first(folder, patience_s=CRASH_PATIENCE_S, hurry=received) and ranks.claim(folder)


def _is_wanted(options: RunOptions) -> bool:
    """Return whether anybody asks for the verdict; the run file has all that it rests on."""
    return not options.quiet or options.json is not None or options.fail_on is not FailOn.NEVER


def _of_run(options: RunOptions, folder: Path) -> Verdict:
    from whygrad.report import json_output, terminal
    from whygrad.run import load

    run = load(folder)
    color = options.color.applies(os.environ, is_terminal=console.is_terminal(sys.__stderr__))
    text = terminal.render(run, color=color, width=console.width(sys.__stderr__))
    return Verdict(text, json_output.render(run), options.fail_on.reached_by(run.findings))


def _failure(options: RunOptions, ending: Ending, error: Exception) -> Verdict:
    if os.environ.get("WHYGRAD_DEBUG"):
        import traceback

        traceback.print_exception(error, file=sys.__stderr__)
    if isinstance(error, WhygradError | OSError):
        return _nothing(options, ending, f"the program was not watched: {error}")
    return _nothing(options, ending, f"internal error: {type(error).__name__}: {error} (the program was not affected)")


def _nothing(options: RunOptions, ending: Ending, note: str) -> Verdict:
    """Return the verdict on a run that cannot be judged."""
    import platform

    from whygrad.model import Raised, RunInfo
    from whygrad.report import json_output

    info = RunInfo(
        script=options.script,
        argv=options.argv,
        cwd=options.cwd,
        python=platform.python_version(),
        whygrad=__version__,
        rank=options.rank,
        world_size=options.world_size,
        pid=os.getpid(),
        ended=True,
        raised=None if ending.error is None else Raised(type(ending.error).__name__, str(ending.error)),
    )
    return Verdict(f"whygrad: {note}\n", json_output.empty(info, (note,)))


@contextmanager
def held_back() -> Iterator[list[int]]:
    """Let SIGTERM wait: torchrun sends it to all ranks as soon as one has failed, also to the one that speaks.

    Yields:
        What was received, so far.
    """
    received: list[int] = []
    try:
        before = signal.signal(signal.SIGTERM, lambda number, _frame: received.append(number))
    except ValueError:  # not in the main thread
        yield received
        return
    try:
        yield received
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL if before is None else before)
        if received:
            console.flush()
            os.kill(os.getpid(), signal.SIGTERM)


def _keep_interrupted() -> None:
    """Let the interpreter end as interrupted, by SIGINT.

    It remembers that its last piece of code ended with KeyboardInterrupt. Every `exec` of a string is such a piece, and
    the standard library has some, as in `dataclass`: the last one has to end that way again.
    """
    with suppress(KeyboardInterrupt):
        exec("raise KeyboardInterrupt")  # noqa: S102 - a constant


def _fail() -> None:
    """End the process with status 1.

    The interpreter settled on its status, 0, before it called the exit handlers, and no handler can raise it any more:
    the process has to be left from here. This is the last handler, so what is skipped is the interpreter's own clean-up
    of modules; its streams are flushed first.
    """
    console.flush()
    os._exit(1)
