"""`whygrad run [options] (FILE | -m MODULE | -c CODE) [args...]`: watch a program, then say the verdict on stderr."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

from whygrad.cli._common import Parser, add_color, add_fail_on, settings
from whygrad.config import FailOn
from whygrad.errors import WhygradError
from whygrad.launch import console, ranks
from whygrad.launch.command import start
from whygrad.launch.options import RunOptions
from whygrad.launch.target import Kind, Target, check, check_torch

_USAGE = "[options] (FILE | -m MODULE | -c CODE) [args...]"
_DESCRIPTION = """\
Run a training program as `python` would, and say at its end which parameters do not learn, why, and what to change.

The program's output, traceback and exit status stay its own; the verdict goes to stderr. Options stand before FILE;
all that follows it belongs to the program."""


def main(words: list[str]) -> Callable[[], int]:
    """Return the start of the program that `words` name."""
    arguments = _parser().parse(words)
    target = _target(arguments)
    options = _options(arguments, target)
    check(target)
    check_torch()
    if arguments.json is not None and ranks.rank() == 0:
        _make_way(Path(arguments.json))
    if arguments.output is not None:
        _make_folder(Path(arguments.output))
    if arguments.live and console.is_terminal(sys.stdout) and console.is_terminal(sys.stdin):
        return _live(words, arguments, options)
    return partial(start, target, options)


def _live(words: list[str], arguments: argparse.Namespace, options: RunOptions) -> Callable[[], int]:
    try:
        from whygrad.live.around import run_around
    except ModuleNotFoundError as error:
        msg = "`whygrad run --live` needs Textual: pip install 'whygrad[live]'"
        raise WhygradError(msg) from error
    own = words[: len(words) - len(arguments.program)]
    folder = [] if arguments.output is not None else ["-o", options.folder]
    inner = [*(word for word in own if word != "--live"), *folder, *arguments.program]
    return partial(run_around, inner, Path(options.folder))


def _parser() -> Parser:
    parser = Parser("run", _USAGE, _DESCRIPTION)
    parser.add_argument("-m", dest="is_module", action="store_true", help="run a module, as `python -m` does")
    parser.add_argument("-c", dest="is_code", action="store_true", help="run code, as `python -c` does")
    parser.add_argument("--json", metavar="OUT", help="write the findings to this file")
    parser.add_argument("-q", "--quiet", action="store_true", default=None, help="say nothing at the end")
    parser.add_argument("-o", "--output", metavar="DIR", help="folder for the run files (.whygrad/NAME-TIME-PID)")
    parser.add_argument("--every", metavar="N", help="record every N steps (auto: as often as the overhead allows)")
    parser.add_argument("--overhead", metavar="SHARE", help="share of the program's time that may be used (0.02)")
    parser.add_argument("--max-size", metavar="MB", help="largest run file of one rank; old steps make room (256)")
    parser.add_argument(
        "--trace-all",
        action="store_true",
        help="follow every call of every step, so that nothing is left to guess: several times slower",
    )
    parser.add_argument("--live", action="store_true", help="follow the run in the terminal while it goes on")
    add_fail_on(parser, "never")
    add_color(parser)
    parser.add_argument("program", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    return parser


def _target(arguments: argparse.Namespace) -> Target:
    if arguments.is_module and arguments.is_code:
        msg = "-m and -c exclude each other"
        raise WhygradError(msg)
    kind = Kind.MODULE if arguments.is_module else Kind.CODE if arguments.is_code else Kind.FILE
    words = arguments.program[1:] if arguments.program[:1] == ["--"] else arguments.program
    if not words:
        msg = f"name the {kind} to run, as in `whygrad run train.py`"
        raise WhygradError(msg)
    name, *args = words
    return Target(kind, name, tuple(args))


def _options(arguments: argparse.Namespace, target: Target) -> RunOptions:
    config = settings(arguments)
    folder = arguments.output or Path(ranks.RUNS_FOLDER, ranks.folder_name(target.stem))
    return RunOptions(
        script=target.script,
        num_args=len(target.args),
        cwd=str(Path.cwd()),
        folder=str(Path(folder).absolute()),
        is_folder_chosen=arguments.output is not None,
        json=arguments.json and str(Path(arguments.json).absolute()),
        quiet=config.quiet,
        every=config.every,
        trace_all=arguments.trace_all,
        overhead=config.overhead,
        max_size=config.max_size,
        fail_on=config.fail_on or FailOn.NEVER,
        color=config.color,
        rank=ranks.rank(),
        world_size=ranks.world_size(),
        local_world_size=ranks.local_world_size(),
    )


def _make_way(file: Path) -> None:
    """Take an older findings file away: should the program be killed, it must not pass for that of this run."""
    if file.exists() and not file.is_file() and not file.is_dir():  # such as /dev/stderr
        return
    try:
        file.touch()
        file.resolve().unlink()  # a link stays
    except OSError as error:
        msg = f"`{file}` cannot be written: {error.strerror}"
        raise WhygradError(msg) from error


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        msg = f"`{folder}` cannot be made: {error.strerror}"
        raise WhygradError(msg) from error
    if ranks.run_file(folder).exists():
        msg = f"`{folder}` holds a run already: name another folder"
        raise WhygradError(msg)
