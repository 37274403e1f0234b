"""The findings file.

    {"schema": "whygrad.findings/1",
     "run": {"script": "train.py", "steps": 200, "path": ".whygrad/train-20261130T071200-4242", ...},
     "notes": ["what was not observed"],
     "findings": [{"rule": "detached", "severity": "error", "tensors": ["encoder.weight"],
                   "file": "train.py", "line": 31, "function": "forward", "code": "h = h.detach()",
                   "message": "one sentence", "fix": "one sentence", "evidence": {"steps": 200},
                   "also": [{"file": "train.py", "line": 40, "function": "", "code": ""}],
                   "consequences": [findings that this one explains]}]}

Files inside the run's working directory are given relative to it. The JSON is strict: NaN and infinities, which it has
no numbers for, are the strings "NaN", "Infinity" and "-Infinity".
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import PurePath
from typing import Any

from whygrad.model import Finding, Place, Raised, RunInfo
from whygrad.report.view import RunView

SCHEMA = "whygrad.findings/1"


def render(run: RunView) -> str:
    """Return the findings of a run as strict JSON, ending with a newline."""
    info = run.evidence.info
    facts = {
        **_facts(info),
        "ranks": [rank.info.rank for rank in run.ranks],
        "parameters": len(run.evidence.parameters),
        "path": None if run.path is None else str(run.path),
    }
    return _document(facts, run.notes, [_finding(finding, info.cwd) for finding in run.findings])


def empty(info: RunInfo, notes: Sequence[str]) -> str:
    """Return the findings file of a run that left no run file: no findings, and the reasons."""
    return _document({**_facts(info), "ranks": [], "parameters": 0, "path": None}, notes, [])


def _facts(info: RunInfo) -> dict[str, Any]:
    """Return the fields of the run; its notes stand at the top of the document, with all others."""
    facts = {field.name: getattr(info, field.name) for field in fields(info) if field.name != "notes"}
    return {**facts, "raised": None if info.raised is None else _raised(info.raised, info.cwd)}


def _raised(raised: Raised, cwd: str) -> dict[str, Any]:
    return {"type": raised.type, "message": raised.message, **_place(raised.place, cwd)}


def _document(run: Mapping[str, object], notes: Sequence[str], findings: Sequence[object]) -> str:
    document = {"schema": SCHEMA, "run": run, "notes": notes, "findings": findings}
    return json.dumps(_strict(document), indent=1, allow_nan=False) + "\n"


def _finding(finding: Finding, cwd: str) -> dict[str, Any]:
    return {
        "rule": finding.rule,
        "severity": finding.severity.value,
        "tensors": finding.tensors,
        **_place(finding.place, cwd),
        "message": finding.message,
        "fix": finding.fix,
        "evidence": finding.evidence,
        "also": [_place(place, cwd) for place in finding.also],
        "consequences": [_finding(consequence, cwd) for consequence in finding.consequences],
    }


def _place(place: Place | None, cwd: str) -> dict[str, Any]:
    if place is None:
        return {"file": None, "line": None, "function": None, "code": None}
    return {"file": _below(place.file, cwd), "line": place.line, "function": place.function, "code": place.code}


def _below(file: str, cwd: str) -> str:
    """Return the file relative to the run's working directory where it lies inside it, else as it is."""
    inside = cwd and PurePath(file).is_relative_to(cwd)
    return os.fspath(PurePath(file).relative_to(cwd)) if inside else file


def _strict(value: object) -> object:
    """Return the value in terms of JSON: keys and unknown objects as strings, no NaN, no infinities."""
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, Mapping):
        return {str(key): _strict(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_strict(item) for item in value]
    return value if value is None or isinstance(value, str | int | float) else str(value)
