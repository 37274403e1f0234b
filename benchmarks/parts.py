"""What `whygrad --every 1` is made of: the time of a step by part of the probe and by function.

    python -m benchmarks.parts [--json] [--steps N] WORKLOAD

Timing each callback takes about a microsecond itself; what the hooks cost torch, and what the probe displaces from
the processor's caches, is in the rest.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from inspect import isfunction
from pathlib import Path
from typing import Any

import torch

from benchmarks.habits import nothing
from benchmarks.worker import run
from benchmarks.workloads import make

_FEW = 3  # steps of the plain loop before it is measured
_clock = time.process_time  # others may be at work beside us


class Ledger:
    """Time by part and function, without that of what they call."""

    def __init__(self) -> None:
        self.spent_s: dict[tuple[str, str], float] = {}
        self.calls: dict[tuple[str, str], int] = {}
        self._inner_s = [0.0]  # of the functions that are running, outermost first

    def timed(self, method: Callable[..., Any]) -> Callable[..., Any]:
        """Return a method of the guard that notes the time of the function it calls."""

        def call(guard: object, part: str, function: Callable[..., Any], *args: Any) -> Any:
            name = getattr(function, "__qualname__", type(function).__name__)
            return self._note((part, name), method, guard, part, function, *args)

        return call

    def timed_as(self, part: str, method: Callable[..., Any]) -> Callable[..., Any]:
        """Return a method that notes its time as that of a part of its own."""
        return lambda *args, **named: self._note((part, method.__qualname__), method, *args, **named)

    def _note(self, key: tuple[str, str], function: Callable[..., Any], *args: Any, **named: Any) -> Any:
        self._inner_s.append(0.0)
        began = _clock()
        try:
            return function(*args, **named)
        finally:
            spent = _clock() - began
            inner = self._inner_s.pop()
            self._inner_s[-1] += spent
            self.spent_s[key] = self.spent_s.get(key, 0.0) + spent - inner
            self.calls[key] = self.calls.get(key, 0) + 1

    def rows(self, steps: int) -> list[dict[str, Any]]:
        """Return microseconds and calls of a step, the dearest function first."""
        return [
            {"part": part, "function": name, "us": 1e6 * spent / steps, "calls": self.calls[part, name] / steps}
            for (part, name), spent in sorted(self.spent_s.items(), key=lambda item: -item[1])
        ]

    def clear(self) -> None:
        """Forget what was noted."""
        self.spent_s.clear()
        self.calls.clear()


@contextmanager
def watched(ledger: Ledger) -> Iterator[None]:
    """Watch what follows as `--every 1` does, with a timed guard."""
    from whygrad.probe.guard import Guard
    from whygrad.probe.recording import Recorder
    from whygrad.probe.session import Session, SessionOptions

    for name in ("_try", "look"):
        setattr(Guard, name, ledger.timed(getattr(Guard, name)))
    for name, method in list(vars(Recorder).items()):
        if isfunction(method) and not name.startswith("_"):
            setattr(Recorder, name, ledger.timed_as("statistics", method))
    setattr(Session, "write", ledger.timed_as("run file", Session.write))  # noqa: B010 - a method, for the type checker
    with tempfile.TemporaryDirectory() as folder:
        session = Session(SessionOptions(Path(folder) / "run", __file__, every=1))
        session.start()
        yield
        session.finish()


def measure(workload: str, warm: int, steps: int) -> dict[str, Any]:
    """Return microseconds of a step: plain, watched, and by part and function."""
    torch.set_num_threads(1)
    plain_s = _step_s(workload, _FEW, steps)
    ledger = Ledger()
    with watched(ledger):
        watched_s = _step_s(workload, warm, steps, ledger.clear)
        rows = ledger.rows(steps)
    return {"plain_us": 1e6 * plain_s, "watched_us": 1e6 * watched_s, "rows": rows}


def _step_s(workload: str, warm: int, steps: int, when_warm: Callable[[], None] = lambda: None) -> float:
    each = make(workload)
    plain = nothing(each)
    run(each, plain, warm)
    when_warm()
    return run(each, plain, steps)


def main(words: Sequence[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.parts", description=__doc__)
    parser.add_argument("workload")
    parser.add_argument("--warm", type=int, default=24, help="steps before; the first ones are looked at closely (24)")
    parser.add_argument("--steps", type=int, default=17, help="steps (17: one of them is looked at closely)")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(words)
    found = measure(options.workload, options.warm, options.steps)
    if options.json:
        print(json.dumps(found))
        return 0
    for row in found["rows"]:
        print(f"{row['us']:10.1f} us {row['calls']:8.1f} calls  {row['part']}: {row['function']}")
    parts = sum(row["us"] for row in found["rows"])
    rest = found["watched_us"] - found["plain_us"] - parts
    print(f"{parts:10.1f} us in parts, {rest:.1f} us beside them; plain step {found['plain_us']:.1f} us")
    return 0


if __name__ == "__main__":
    sys.exit(main())
