"""Measure what watching costs, and write `results.json` and `results.md`.

    python -m benchmarks [--quick] [--rounds N] [--only WORKLOAD] [--into FOLDER]

Workloads that are not measured this time keep what was measured before.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks import startup
from benchmarks.measuring import measure
from benchmarks.page import markdown
from benchmarks.plans import plan_of
from benchmarks.workloads import WORKLOADS

FOLDER = Path(__file__).resolve().parent
FORMAT = 2  # of results.json
QUICK = "tiny MLP 4-8-2"


def main(words: Sequence[str] | None = None) -> int:
    """Measure, and write the results."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="only see that it works; without --only on the tiny one")
    parser.add_argument("--rounds", type=int, help="turns of each variant, in place of the workload's own number")
    parser.add_argument("--only", help="workloads whose names contain this")
    parser.add_argument("--into", type=Path, default=FOLDER, help="folder of the results (benchmarks)")
    options = parser.parse_args(words)
    wanted = options.only or (QUICK if options.quick else "")
    results = read(options.into)
    for name in [name for name in WORKLOADS if wanted in name]:
        print(f"{name} ...", file=sys.stderr, flush=True)
        found = measure(name, plan_of(name, quick=options.quick, rounds=options.rounds))
        results = merged(results, name, {"date": f"{datetime.now(UTC):%Y-%m-%d}", "machine": machine(), **found})
        write(results, options.into)
    if not wanted:
        results = {**results, "startup": startup.measure(options.rounds or startup.ROUNDS)}
        write(results, options.into)
    print(markdown(results))
    return 0


def read(folder: Path) -> dict[str, Any]:
    """Return the results that are there, none where there are none in this format."""
    path = folder / "results.json"
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    return found if found.get("format") == FORMAT else {"format": FORMAT, "workloads": {}}


def merged(results: Mapping[str, Any], name: str, found: Mapping[str, Any]) -> dict[str, Any]:
    """Return the results with one workload put in, or in place of what was known of it, in the order of all."""
    workloads = {**results["workloads"], name: found}
    return {**results, "workloads": {name: workloads[name] for name in WORKLOADS if name in workloads}}


def write(results: Mapping[str, Any], folder: Path) -> None:
    """Write both files."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "results.json").write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    (folder / "results.md").write_text(markdown(results) + "\n", encoding="utf-8")


def machine() -> dict[str, str]:
    """Return what the numbers depend on."""
    import torch

    from whygrad.stats.library import library

    return {
        "processor": _processor(),
        "python": platform.python_version(),
        "torch": str(torch.__version__),
        "kernel": "torch" if library() is None else "compiled",
    }


def _processor() -> str:
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines() if Path("/proc/cpuinfo").exists() else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()


if __name__ == "__main__":
    sys.exit(main())
