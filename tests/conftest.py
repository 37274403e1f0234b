"""Fixtures that every test may use, the order of the tests, and the corpus's table at the end of the log."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import pytest

from tests.corpus.score import Row, table
from tests.programs import Ran, run_plain, run_whygrad

ARTIFACTS = Path(__file__).parent.parent / "test-artifacts"


@pytest.fixture
def plain_run(tmp_path: Path) -> Callable[..., Ran]:
    """Return `run_plain` in this test's own folder: `plain_run(source, *args, env=...)`."""
    return functools.partial(_run_in, run_plain, tmp_path)


@pytest.fixture
def whygrad_run(tmp_path: Path) -> Callable[..., Ran]:
    """Return `run_whygrad` in this test's own folder: `whygrad_run(source, *args, options=..., env=...)`."""
    return functools.partial(_run_in, run_whygrad, tmp_path)


def _run_in(runner: Callable[..., Ran], folder: Path, source: str, *args: str, **options: object) -> Ran:
    return runner(source, folder, *args, **options)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the tests that look back at others behind them all; under xdist they then wait for running ones only."""
    items.sort(key=lambda item: item.get_closest_marker("last") is not None)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print what whygrad reached on the corpus, and leave it in `test-artifacts/`."""
    rows = [
        Row(**value)
        for reports in terminalreporter.stats.values()
        for report in reports
        if getattr(report, "when", "") == "call"
        for name, value in report.user_properties
        if name == "corpus_row"
    ]
    if not rows:
        return
    lines = table(sorted(rows, key=lambda row: row.case))
    terminalreporter.section("whygrad on the corpus")
    terminalreporter.write_line("\n".join(lines))
    ARTIFACTS.mkdir(exist_ok=True)
    (ARTIFACTS / "corpus.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (ARTIFACTS / "corpus.json").write_text(json.dumps([asdict(row) for row in rows], indent=1), encoding="utf-8")
