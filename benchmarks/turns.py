"""Variants of one workload take turns: processes of their own that make a few steps when they are told to."""

from __future__ import annotations

import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PLAIN = "plain"
AGAIN = "plain again"  # the same once more: by how much it differs is noise
DEFAULT = "whygrad"
EVERY = "whygrad --every 1"

_WORKER = Path(__file__).resolve().parent / "worker.py"
_OPTIONS = {DEFAULT: [], EVERY: ["--every", "1"]}


@dataclass(frozen=True, slots=True)
class Worker:
    """One variant at work."""

    process: subprocess.Popen[str]
    folder: Path  # its working directory

    def ask(self, order: str) -> dict[str, Any]:
        """Give an order, and return the answer."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"{order}\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        assert line, f"a variant ended at {order!r}"
        answer: dict[str, Any] = json.loads(line)
        return answer

    def end(self) -> None:
        """Let it end by itself."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        if not self.process.stdin.closed:
            self.process.stdin.close()
            self.process.wait()
            self.process.stdout.close()


@contextmanager
def worker(
    workload: str, variant: str, *, batches: int = 1, environment: Mapping[str, str] | None = None
) -> Iterator[Worker]:
    """Start a variant; it has ended when the context has."""
    watched = ["-m", "whygrad", "run", "--quiet", *_OPTIONS[variant]] if variant in _OPTIONS else []
    settings = {"OMP_NUM_THREADS": "1", "WANDB_SILENT": "true", "PYTHONWARNINGS": "ignore", **(environment or {})}
    with tempfile.TemporaryDirectory() as folder:
        process = subprocess.Popen(
            [sys.executable, *watched, str(_WORKER), workload, variant, str(batches)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=folder,
            env={**os.environ, **settings},
        )
        found = Worker(process, Path(folder))
        try:
            yield found
        finally:
            found.end()


@dataclass(frozen=True, slots=True)
class Turns:
    """What came of them."""

    step_s: dict[str, list[float]]  # of each variant, round by round
    last: dict[str, dict[str, Any]]  # the answer to `check`

    def ratios(self, variant: str) -> dict[str, float]:
        """Return the median and the quartiles of the ratio to the plain loop of the same round."""
        return spread([mine / base for mine, base in zip(self.step_s[variant], self.step_s[PLAIN], strict=True)])

    def whole_ratio(self, variant: str) -> dict[str, float]:
        """Return the ratio over all rounds together, and the quartiles.

        Where only some rounds hold the dear steps, the median would leave them out.
        """
        return self.ratios(variant) | {"ratio": sum(self.step_s[variant]) / sum(self.step_s[PLAIN])}

    def step_ms(self, variant: str) -> float:
        """Return the median time of a step."""
        return 1e3 * statistics.median(self.step_s[variant])


def take_turns(workers: Mapping[str, Worker], rounds: int, turn_s: float, warm_steps: int) -> Turns:
    """Let each variant make steps for about `turn_s` seconds of its own, in another order each round, then check it.

    Args:
        workers: By variant, one of them `PLAIN`.
        rounds: How often.
        turn_s: Processor time.
        warm_steps: Made before, by each.
    """
    steps: dict[str, int] = {}
    for variant, each in workers.items():
        warm_s = each.ask(f"run {warm_steps}")["step_s"]
        half_s = each.ask(f"run {max(1, round(turn_s / 2 / warm_s))}")["step_s"]
        steps[variant] = max(1, round(turn_s / half_s))
    times: dict[str, list[float]] = {variant: [] for variant in workers}
    for _ in range(rounds):
        for variant in random.sample(list(workers), len(workers)):
            times[variant].append(workers[variant].ask(f"run {steps[variant]}")["step_s"])
    return Turns(times, {variant: each.ask("check") for variant, each in workers.items()})


def spread(numbers: Sequence[float]) -> dict[str, float]:
    """Return the median and the quartiles."""
    low, middle, high = statistics.quantiles(numbers, n=4, method="inclusive") if len(numbers) > 1 else [numbers[0]] * 3
    return {"ratio": middle, "low": low, "high": high}


@contextmanager
def workers_of(workload: str, variants: Sequence[str]) -> Iterator[dict[str, Worker]]:
    """Start several variants."""
    with ExitStack() as stack:
        yield {variant: stack.enter_context(worker(workload, variant)) for variant in variants}
