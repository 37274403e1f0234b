"""`whygrad html [RUN]`: one page that shows a run, offline."""

from __future__ import annotations

import sys
from pathlib import Path

from whygrad.cli._common import Parser, open_page, progress, settings, write_page
from whygrad.run import load

_USAGE = "[options] [RUN]"
_DESCRIPTION = """\
Write a run as one HTML page that needs no network: findings, the whole model as a picture, every tensor in depth. RUN
is a run folder or one rank's file; by default the newest run below the working directory."""


def main(words: list[str]) -> int:
    """Write the page and say where it is."""
    parser = Parser("html", _USAGE, _DESCRIPTION)
    parser.add_argument("run", nargs="?", metavar="RUN", help="a run folder or file")
    parser.add_argument("-o", "--output", metavar="PATH", help="write to this file (whygrad.html); - for stdout")
    parser.add_argument("--open", action="store_true", help="show it in the browser")
    arguments = parser.parse(words)
    settings(arguments)
    from whygrad.page.rendering import render  # jinja2 and a Markdown parser: not needed to refuse a command line

    with progress("reading steps") as track:
        text = render(load(arguments.run), track)
    if arguments.output == "-":
        sys.stdout.write(text)
        return 0
    file = Path(arguments.output or "whygrad.html")
    write_page(file, text)
    if arguments.open:
        open_page(file)
    return 0
