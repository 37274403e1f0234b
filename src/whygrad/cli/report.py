"""`whygrad report [RUN]`: the verdict on a run, from its file."""

from __future__ import annotations

import sys
from pathlib import Path

from whygrad.cli._common import Parser, add_color, add_fail_on, page, settings
from whygrad.config import Color, Config, FailOn, OutputFormat
from whygrad.errors import WhygradError
from whygrad.run import Run, load

_USAGE = "[options] [RUN]"
_DESCRIPTION = """\
Say the verdict on a run, from its run file. RUN is a run folder or one rank's file; by default the newest run below
the working directory."""


def main(words: list[str]) -> int:
    """Write the report; return 1 if a finding reaches the level of `--fail-on`."""
    parser = Parser("report", _USAGE, _DESCRIPTION)
    parser.add_argument("run", nargs="?", metavar="RUN", help="a run folder or file")
    parser.add_argument("--output-format", metavar="FORMAT", help="text or json (text)")
    parser.add_argument("-o", "--output", metavar="PATH", help="write to this file instead of stdout")
    add_fail_on(parser, "error")
    add_color(parser)
    arguments = parser.parse(words)
    config = settings(arguments)
    run = load(arguments.run)
    if arguments.output is None:
        sys.stdout.write(_render(run, config, config.color))
    else:
        _write(Path(arguments.output), _render(run, config, Color.NEVER))
    return int((config.fail_on or FailOn.ERROR).reached_by(run.findings))


def _render(run: Run, config: Config, color: Color) -> str:
    if config.output_format is OutputFormat.JSON:
        from whygrad.report import json_output

        return json_output.render(run)
    from whygrad.report import terminal

    shown = page(color)
    return terminal.render(run, color=shown.color, width=shown.width)


def _write(file: Path, text: str) -> None:
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        msg = f"`{file}` cannot be written: {error.strerror}"
        raise WhygradError(msg) from error
