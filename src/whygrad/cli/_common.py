"""What the commands share: reading a command line, writing an answer."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import NoReturn

from whygrad import config
from whygrad.errors import WhygradError
from whygrad.launch import console


class Parser(argparse.ArgumentParser):
    """A parser of one command's words, whose complaint is one sentence that names the nearest known option."""

    def __init__(self, command: str, usage: str, description: str) -> None:
        super().__init__(
            prog=f"whygrad {command}",
            usage=f"whygrad {command} {usage}",
            description=description,
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )

    def parse(self, words: list[str]) -> argparse.Namespace:
        """Return the command line, read.

        Raises:
            WhygradError: It is none of this command's.
        """
        arguments, unknown = self.parse_known_args(words)
        if unknown:
            options = [option for option in self._option_string_actions if option.startswith("--")]
            hint = config.nearest(unknown[0], options) if unknown[0].startswith("-") else ""
            self.error(f"unknown argument `{unknown[0]}`{hint}")
        return arguments

    def error(self, message: str) -> NoReturn:
        """Raise the complaint, for `main` to say."""
        msg = f"{message} (see {self.prog} --help)"
        raise WhygradError(msg)


def add_color(parser: Parser) -> None:
    """Add `--color`."""
    parser.add_argument("--color", metavar="WHEN", help="auto, always or never")


def add_fail_on(parser: Parser, default: str) -> None:
    """Add `--fail-on`."""
    parser.add_argument(
        "--fail-on",
        metavar="LEVEL",
        help=f"end with status 1 if a finding is at least that severe: error, warning, info or never ({default})",
    )


def settings(arguments: argparse.Namespace) -> config.Config:
    """Return the settings that hold here: of the files, the environment and these arguments."""
    names = [field.name for field in fields(config.Config)]
    return config.load(Path.cwd(), os.environ, {name: getattr(arguments, name, None) for name in names})


@dataclass(frozen=True, slots=True)
class Page:
    """What an answer on stdout may look like."""

    color: bool
    width: int


def page(setting: config.Color) -> Page:
    """Return what stdout can show."""
    color = setting.applies(os.environ, is_terminal=console.is_terminal(sys.stdout))
    return Page(color, console.width(sys.stdout))


@contextmanager
def progress(label: str) -> Iterator[Callable[[Sequence[int]], Iterable[int]]]:
    """Show a bar on a terminal while sequences are passed through; it appears only where that takes a while."""
    if not console.is_terminal(sys.stderr):
        yield iter
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        yield lambda items: bar.track(items, description=label)


def write_page(file: Path, text: str) -> None:
    """Write a page, and say where and how large it is.

    Raises:
        WhygradError: It cannot be written.
    """
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        msg = f"`{file}` cannot be written: {error.strerror}"
        raise WhygradError(msg) from error
    print(f"whygrad: wrote {file} ({len(text.encode()) / 1e6:.1f} MB)", file=sys.stderr)


def open_page(file: Path) -> None:
    """Show a page in the browser."""
    import webbrowser

    webbrowser.open(file.resolve().as_uri())
