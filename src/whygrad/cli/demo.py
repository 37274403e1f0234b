"""`whygrad demo`: one network, trained with one activation and then with another, and where the gradient goes.

The two runs are made by `whygrad run`, of a program that anybody could have written (`launch/demo_mlp.py`).
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path

from whygrad.cli._common import Page, Parser, add_color, open_page, page, settings, write_page
from whygrad.config import nearest
from whygrad.errors import WhygradError
from whygrad.launch.target import check_torch
from whygrad.report.comparison import compare
from whygrad.report.table import statistics_table
from whygrad.report.writing import short_path
from whygrad.run import load
from whygrad.runfile.reader import RUNS_FOLDER
from whygrad.runfile.writer import ensure_gitignore

_USAGE = "[--depth N] [--activation A B] [--steps N]"
_DESCRIPTION = """\
Train a small network on a random batch, once with each of two activations, and show side by side how much gradient
reaches each of its layers."""

_PROGRAM = Path(__file__).parents[1] / "launch" / "demo_mlp.py"
ACTIVATIONS = ("ReLU", "LeakyReLU", "ELU", "GELU", "SiLU", "Tanh", "Sigmoid", "Softplus", "Identity")
"""Names in `torch.nn`, which is not imported here."""


def main(words: list[str]) -> int:
    """Make the two runs and show them."""
    parser = Parser("demo", _USAGE, _DESCRIPTION)
    parser.add_argument("--depth", type=_count, default=3, metavar="N", help="linear layers (3)")
    parser.add_argument("--steps", type=_count, default=20, metavar="N", help="optimizer steps (20)")
    parser.add_argument(
        "--activation",
        nargs=2,
        default=["ReLU", "Sigmoid"],
        metavar=("A", "B"),
        help=f"two of {', '.join(ACTIVATIONS)} (ReLU Sigmoid)",
    )
    parser.add_argument("--html", action="store_true", help="show them as a page in the browser, too")
    add_color(parser)
    arguments = parser.parse(words)
    shown = page(settings(arguments).color)
    activations = [_activation(name) for name in arguments.activation]
    check_torch()
    folder = _folder()
    runs = [_run(folder, name, arguments.depth, arguments.steps) for name in activations]
    sys.stdout.write(_answer((runs[0], runs[1]), activations, shown))
    if arguments.html:
        _show_page(runs[0], runs[1], folder / "demo.html")
    return 0


def _show_page(a: Path, b: Path, file: Path) -> None:
    from whygrad.page.comparing import render_comparison

    first, second = load(a), load(b)
    write_page(file, render_comparison(compare(first, second), first.evidence, second.evidence))
    open_page(file)


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        msg = f"`{text}` is no whole number from 1 on"
        raise argparse.ArgumentTypeError(msg)
    return int(text)


def _activation(name: str) -> str:
    known = {activation.lower(): activation for activation in ACTIVATIONS}
    if name.lower() not in known:
        msg = f"there is no activation `{name}` here{nearest(name.lower(), known)}"
        raise WhygradError(msg)
    return known[name.lower()]


def _folder() -> Path:
    """Return a folder for the runs, in the working directory if possible."""
    folder = Path(RUNS_FOLDER)
    try:
        ensure_gitignore(folder)
    except WhygradError:
        return Path(tempfile.mkdtemp(prefix="whygrad-demo-"))
    return folder


def _run(folder: Path, activation: str, depth: int, steps: int) -> Path:
    """Run the program under whygrad, and return the folder of the run."""
    run = folder / f"demo-{activation}-{datetime.now(UTC):%Y%m%dT%H%M%S}-{os.getpid()}"
    whygrad = [sys.executable, "-m", "whygrad", "run", "--quiet", "--every=1", "--fail-on=never", f"--output={run}"]
    program = [str(_PROGRAM), f"--depth={depth}", f"--steps={steps}", f"--activation={activation}"]
    status = subprocess.run([*whygrad, *program], check=False).returncode
    if status != 0:
        msg = f"the demonstration with {activation} ended with status {status}"
        raise WhygradError(msg)
    return run


def _answer(runs: tuple[Path, Path], activations: list[str], shown: Page) -> str:
    a, b = load(runs[0]), load(runs[1])
    tables = [
        f"{name}\n{statistics_table(run, width=shown.width, color=shown.color, outputs=False)}\n"
        for name, run in zip(activations, (a, b), strict=True)
    ]
    comparison = compare(a, b).render(color=shown.color, width=shown.width)
    paths = " ".join(short_path(path) for path in runs)
    return f"{''.join(tables)}{comparison}\nsaved {paths}\nnext: whygrad compare {paths}\n"
