"""Facts and run files that the tests of this folder share."""

from __future__ import annotations

import struct
import subprocess
import sys
import textwrap
from pathlib import Path

from whygrad.model import (
    STATISTICS,
    Event,
    Module,
    Optimizer,
    Output,
    Parameter,
    Place,
    Raised,
    Role,
    RunInfo,
    Statistics,
    Step,
    Total,
)
from whygrad.runfile.writer import RunWriter

HERE = Path(__file__)
PLACE = Place("train.py", 31, "forward", "x = x.detach()", ((30, "x = self.a(x)"), (31, "x = x.detach()")))
OTHER = Place("train.py", 7, "__init__", "self.b = nn.Linear(4, 2)", ((7, "self.b = nn.Linear(4, 2)"),))
INFO = RunInfo(
    script="train.py",
    argv=("--lr", "0.1"),
    started_utc="2026-11-30T07:12:00Z",
    raised=Raised("RuntimeError", "does not require grad", PLACE),
    notes=("a compiled region",),
)
MODULE = Module(0, "b", "model", "Linear", made_at=OTHER, order=1, calls=5, training=True)
PARAMETER = Parameter(
    0, "b.weight", (2, 4), "float32", aliases=("c.weight",), stale=True, made_at=OTHER, optimizers=(0, 2), uses=3
)
OUTPUT = Output(0, "b", 0, 1, (8, 2), "float32", calls=5, view_written=True)
OPTIMIZER = Optimizer(0, "optimizer", "SGD", made_at=PLACE, learning_rates=(0.1, 0.0))
STEP = Step(0, 0, 0.5, backwards=1, loss=2.5, learning_rates=(0.1,), recorded=True, position=0, recorded_before=0)
EVENT = Event("cut", 0, 4, count=5, subject="b.weight", place=PLACE, detail={"operation": "detach", "lost": [0, 1]})
TOTAL = Total(Role.GRADIENT, 0, steps=5, statistics=Statistics(8, -1.5, 3, 4, 2, 1, 0, 0))


def matrix(*rows: tuple[float, ...]) -> bytes:
    """Return the bytes of a statistics matrix, filled up with zeros on the right."""
    return b"".join(struct.pack(f"<{len(STATISTICS)}d", *row, *[0.0] * (len(STATISTICS) - len(row))) for row in rows)


LARGE_ROWS = 1600
LARGE = matrix(*[(1.0,)] * LARGE_ROWS)  # 100 KB


def write_sample(path: Path, *, steps: int = 1) -> Path:
    """Write a run file with one fact of every type, and `steps` steps with their matrices."""
    writer = RunWriter(path, INFO)
    for fact in (MODULE, PARAMETER, OUTPUT, OPTIMIZER):
        writer.put(fact)
    writer.put_events([EVENT])
    writer.put_totals([TOTAL])
    for step in range(steps):
        writer.add_step(Step(step, 0, 0.5 * step, loss=1.0 / (step + 1)))
        writer.add_matrix(step, Role.GRADIENT, [0, 1], matrix((8, step), (4, -step)))
        writer.add_histogram(step, Role.GRADIENT, [0], struct.pack("<32I", *range(32)))
    writer.close()
    return path


def python(source: str, *arguments: object) -> subprocess.Popen[str]:
    """Start Python on the dedented source, with this module's names imported."""
    program = f"from tests.runfile.samples import *\n{textwrap.dedent(source)}"
    return subprocess.Popen(
        [sys.executable, "-c", program, *map(str, arguments)],
        cwd=HERE.parents[2],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
