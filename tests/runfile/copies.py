"""A run file written anew from evidence, step by step as the probe writes it, so that old steps may be thinned."""

from __future__ import annotations

import struct
from dataclasses import fields
from pathlib import Path

from whygrad.evidence import Evidence
from whygrad.model import HISTOGRAM_BINS, STATISTICS, Role, Statistics
from whygrad.runfile.retention import Retention
from whygrad.runfile.writer import MAX_BYTES, RunWriter

_FLUSH_EVERY = 16  # steps
_ONCE = (
    *("modules", "parameters", "cuts", "outputs", "optimizers", "groups", "replicas", "feeds", "symmetries"),
    *("activations", "rounds", "happenings", "clips", "loss_scales", "losses", "softmaxes"),
)


def copy(evidence: Evidence, path: Path, *, retention: Retention | None = None, max_bytes: int = MAX_BYTES) -> Path:
    """Write everything that the evidence holds to a new run file."""
    writer = RunWriter(path, evidence.info, max_bytes=max_bytes, retention=retention)
    for name in _ONCE:
        for fact in getattr(evidence, name):
            writer.put(fact)
    for step in evidence.steps:
        for role in Role:
            _copy_matrices(evidence, writer, step.id, role)
        writer.add_step(step)
        if step.id % _FLUSH_EVERY == 0:
            seen = (t for t in evidence.totals if t.first_nonfinite_step is None or t.first_nonfinite_step <= step.id)
            writer.put_totals(seen)
            writer.flush()
    writer.put_totals(evidence.totals)
    writer.put_events(evidence.events)
    writer.close()
    return path


def _copy_matrices(evidence: Evidence, writer: RunWriter, step: int, role: Role) -> None:
    found = evidence.matrices.read(step, role)
    if found:
        values = (struct.pack(f"<{len(STATISTICS)}d", *_values(each)) for each in found.values())
        writer.add_matrix(step, role, list(found), b"".join(values))
    counts = evidence.matrices.histogram(step, role)
    if counts:
        packed = (struct.pack(f"<{HISTOGRAM_BINS}I", *each) for each in counts.values())
        writer.add_histogram(step, role, list(counts), b"".join(packed))


def _values(statistics: Statistics) -> list[float]:
    return [getattr(statistics, field.name) for field in fields(statistics)]
