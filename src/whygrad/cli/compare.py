"""`whygrad compare A B`: two runs side by side; what is new, what is gone, what gets less gradient."""

from __future__ import annotations

import sys
from pathlib import Path

from whygrad.cli._common import Parser, add_color, add_fail_on, page, settings, write_page
from whygrad.config import FailOn
from whygrad.report.comparison import compare
from whygrad.run import load

_USAGE = "[options] A B"
_DESCRIPTION = """\
Set run B against run A: the gradient of each layer, nearest the input first, and the findings that are new or gone.
A and B are run folders or files."""


def main(words: list[str]) -> int:
    """Write the comparison; return 1 if a finding that only B has reaches the level of `--fail-on`."""
    parser = Parser("compare", _USAGE, _DESCRIPTION)
    parser.add_argument("a", metavar="A", help="a run folder or file")
    parser.add_argument("b", metavar="B", help="the one to set against it")
    parser.add_argument("--html", metavar="PATH", help="write it as one page as well")
    add_fail_on(parser, "error")
    add_color(parser)
    arguments = parser.parse(words)
    config = settings(arguments)
    a, b = load(arguments.a), load(arguments.b)
    comparison = compare(a, b)
    shown = page(config.color)
    sys.stdout.write(comparison.render(color=shown.color, width=shown.width))
    if arguments.html is not None:
        from whygrad.page.comparing import render_comparison

        write_page(Path(arguments.html), render_comparison(comparison, a.evidence, b.evidence))
    return int((config.fail_on or FailOn.ERROR).reached_by(comparison.new))
