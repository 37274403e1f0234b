"""Run a function under a session and read back what was recorded."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from whygrad.evidence import Evidence
from whygrad.model import Parameter
from whygrad.probe.session import Session, SessionOptions
from whygrad.runfile.reader import read_evidence


def watched(
    folder: Path, program: Callable[[], object], *, every: int | None = None, script: str = __file__
) -> Evidence:
    """Return the evidence of a program; what it raises is recorded as the end of the run."""
    session = Session(SessionOptions(folder / "run", script, every=every))
    session.start()
    error: Exception | None = None
    try:
        kept = program()  # models must live until the end, as a script's globals do
    except Exception as raised:
        error = raised
    session.finish(error)
    assert not session.guard.failures
    del error
    kept = None
    assert kept is None
    return read_evidence(session.path)


def by_name(evidence: Evidence) -> dict[str, Parameter]:
    """Return the parameters by name."""
    return {p.name: p for p in evidence.parameters}
