"""What a watched run has written: that it is right, how much it is, and what whygrad says that it took."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from whygrad.model import STATISTICS

_GROWING = ("matrix", "histogram", "step")  # tables that have a row for each step
_INDEX = "sqlite_autoindex_{}_1"


def stored(folder: Path, gradient_l2: float) -> dict[str, float]:
    """Return the bytes that each recorded step takes, and check that the last step's gradients are right there."""
    import whygrad

    evidence = whygrad.load(next(folder.glob(".whygrad/*-*"))).evidence
    recorded = [step for step in evidence.steps if step.recorded]
    last = recorded[-1].gradient_l2
    assert last is not None
    assert abs(last - gradient_l2) <= 1e-4 * gradient_l2, (last, gradient_l2)
    assert len(recorded) == len(evidence.steps)
    with closing(sqlite3.connect(next(folder.glob(".whygrad/*-*/*.whygrad")))) as file:
        pages = dict(file.execute("SELECT name, sum(pgsize) FROM dbstat GROUP BY name"))
        rows = file.execute("SELECT sum(length(statistics)) FROM matrix").fetchone()[0] / (8 * len(STATISTICS))
        counts = file.execute("SELECT sum(length(counts)) FROM histogram").fetchone()[0]
    growing = sum(pages.get(name, 0) for table in _GROWING for name in (table, _INDEX.format(table)))
    return {
        "stored_bytes": growing / len(recorded),
        "row_bytes": (growing - counts) / rows,
        "once_bytes": sum(pages.values()) - growing,
    }


def own_share(folder: Path) -> dict[str, float]:
    """Return what the verdict says that whygrad took of the run."""
    import whygrad

    info = whygrad.load(next(folder.glob(".whygrad/*-*"))).evidence.info
    return {"own_s": info.own_s, "duration_s": info.duration_s, "steps": info.steps, "recorded": info.recorded_steps}
