"""Measure what watching costs, and write `results.json` and `results.md`.

    python -m benchmarks [--quick] [--rounds N] [--only WORKLOAD]

Every variant is a process of its own that makes a few steps when it is told to; the variants take turns, in another
order each round, with the plain loop among them twice. Times are processor time of one thread, ratios are to the plain
loop of the same round: a machine that is busy with something else changes them little. whygrad's default mode takes
turns with the plain loop alone: its budget goes by the clock, which runs while others have their turn.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.habits import HABITS, is_installed
from benchmarks.table import markdown
from benchmarks.workloads import WORKLOADS, make

FOLDER = Path(__file__).resolve().parent
DEFAULT = "whygrad"
EVERY = "whygrad --every 1"
STEPS = {"tiny MLP 4-8-2": 5000, "MLP 784-512-512-10": 300}  # of one turn: as long as whygrad takes to write once
FEW_STEPS = 2
WARM_UP = {"tiny MLP 4-8-2": 20_000, "MLP 784-512-512-10": 1500}  # of whygrad, which records its first steps densely
LITTLE_WARM_UP = 30
QUICK = ("tiny MLP 4-8-2",)


@dataclass(frozen=True)
class Worker:
    """One variant at work."""

    process: subprocess.Popen[str]
    folder: Path

    def ask(self, order: str) -> dict[str, Any]:
        """Give an order and return the answer."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"{order}\n")
        self.process.stdin.flush()
        answer: dict[str, Any] = json.loads(self.process.stdout.readline())
        return answer

    def end(self) -> None:
        """Let it end by itself."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


@contextmanager
def worker(workload: str, variant: str, overhead: float) -> Iterator[Worker]:
    """Start a variant."""
    options = {EVERY: ["--every", "1"], DEFAULT: ["--overhead", str(overhead)]}.get(variant)
    watched = [] if options is None else ["-m", "whygrad", "run", "--quiet", *options]
    with tempfile.TemporaryDirectory() as folder:
        process = subprocess.Popen(
            [sys.executable, *watched, str(FOLDER / "worker.py"), workload, variant],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=folder,
            env={**os.environ, "OMP_NUM_THREADS": "1", "WANDB_SILENT": "true"},
        )
        found = Worker(process, Path(folder))
        try:
            yield found
        finally:
            found.end()


def take_turns(
    workload: str, variants: Sequence[str], rounds: int, *, overhead: float, warm_up: int
) -> dict[str, dict[str, Any]]:
    """Return the ratio of each variant to the plain loop, and what else it needs."""
    steps = min(STEPS.get(workload, FEW_STEPS), warm_up)
    times: dict[str, list[float]] = {variant: [] for variant in variants}
    with ExitStack() as stack:
        workers = {variant: stack.enter_context(worker(workload, variant, overhead)) for variant in variants}
        for variant, each in workers.items():
            each.ask(f"run {warm_up if variant == DEFAULT else min(warm_up, 2 * steps)}")
        for _ in range(rounds):
            for variant in random.sample(list(variants), len(variants)):
                times[variant].append(workers[variant].ask(f"run {steps}")["step_s"])
        last = {variant: each.ask("check") for variant, each in workers.items()}
        if EVERY in workers:
            workers[EVERY].end()
            last[EVERY] |= stored(workers[EVERY].folder, last[EVERY]["gradient_l2"])
    plain = times["plain"]
    return {
        variant: spread([mine / base for mine, base in zip(times[variant], plain, strict=True)])
        | {
            "step_ms": 1e3 * statistics.median(times[variant]),
            "added_mb": last[variant]["peak_mb"] - last["plain"]["peak_mb"],
        }
        | {key: value for key, value in last[variant].items() if key not in ("peak_mb", "gradient_l2")}
        for variant in variants
    }


def spread(ratios: Sequence[float]) -> dict[str, float]:
    """Return the median and the quartiles."""
    low, middle, high = statistics.quantiles(ratios, n=4, method="inclusive") if len(ratios) > 1 else [ratios[0]] * 3
    return {"ratio": middle, "low": low, "high": high}


def stored(folder: Path, gradient_l2: float) -> dict[str, float]:
    """Return how much a run has written for each step, and check that the last step's gradients are right there."""
    import whygrad

    evidence = whygrad.load(next(folder.glob(".whygrad/*-*"))).evidence
    recorded = [step for step in evidence.steps if step.recorded]
    last = recorded[-1].gradient_l2
    assert last is not None
    assert abs(last - gradient_l2) <= 1e-4 * gradient_l2, (last, gradient_l2)
    assert len(recorded) == len(evidence.steps)
    size = sum(path.stat().st_size for path in folder.rglob("*.whygrad"))
    rows = len(evidence.parameters) * 3 + len(evidence.outputs) * 2
    return {"stored_bytes": size / len(recorded), "stored_bytes_a_row": size / len(recorded) / rows}


def in_place(workload: str, times: int) -> dict[str, float]:
    """Return what the kernels need for all gradients, as multiples of reading them once."""
    with worker(workload, "plain", 0.0) as each:
        each.ask("run 2")
        found = each.ask(f"place {times}")
    return {name: found[name] / found["read pass"] for name in ("statistics", "with histogram", "two numbers")} | {
        "read_ms": 1e3 * found["read pass"]
    }


def measure(workload: str, *, rounds: int, quick: bool) -> dict[str, Any]:
    """Return all that is known about one workload."""
    warm_up = 5 if quick else WARM_UP.get(workload, LITTLE_WARM_UP)
    habits = ["the lesson's hook"] if quick else [habit for habit in HABITS if is_installed(habit)]
    default = take_turns(workload, ["plain", DEFAULT], rounds, overhead=0.01, warm_up=warm_up)
    others = take_turns(workload, ["plain", "plain again", EVERY, *habits], rounds, overhead=0.02, warm_up=warm_up)
    parameters = list(make(workload).model.parameters())
    return {
        "parameters": len(parameters),
        "megabytes": sum(p.nbytes for p in parameters) / 2**20,
        "largest_mb": max(p.nbytes for p in parameters) / 2**20,
        "variants": {DEFAULT: default[DEFAULT], **{name: others[name] for name in others if name != "plain"}},
        "plain_ms": others["plain"]["step_ms"],
        "in_place": in_place(workload, 3 if quick else 20),
    }


def main(words: Sequence[str] | None = None) -> int:
    """Measure, and write the results."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="only see that it works")
    parser.add_argument("--rounds", type=int, default=15, help="turns of each variant (15)")
    parser.add_argument("--only", help="workloads whose names contain this")
    parser.add_argument("--into", type=Path, default=FOLDER, help="folder of the results (benchmarks)")
    options = parser.parse_args(words)
    chosen = [name for name in WORKLOADS if (options.only or "") in name and (not options.quick or name in QUICK)]
    rounds = 2 if options.quick else options.rounds
    results: dict[str, Any] = {"machine": machine(), "rounds": rounds, "workloads": {}}
    for name in chosen:
        print(f"{name} ...", file=sys.stderr, flush=True)
        results["workloads"][name] = measure(name, rounds=rounds, quick=options.quick)
        options.into.mkdir(parents=True, exist_ok=True)
        (options.into / "results.json").write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    text = markdown(results)
    (options.into / "results.md").write_text(text + "\n", encoding="utf-8")
    print(text)
    return 0


def machine() -> dict[str, str]:
    """Return what the numbers depend on."""
    import torch

    return {
        "processor": _processor(),
        "python": platform.python_version(),
        "torch": str(torch.__version__),
        "kernel": "compiled" if _is_compiled() else "torch",
    }


def _processor() -> str:
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines() if Path("/proc/cpuinfo").exists() else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()


def _is_compiled() -> bool:
    from whygrad.stats.library import library

    return library() is not None


if __name__ == "__main__":
    sys.exit(main())
