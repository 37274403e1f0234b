"""Measure what starting costs: `import whygrad`, what `whygrad run` adds to a program, and `whygrad report`.

    python -m benchmarks.startup [--rounds N]

Processor time of whole processes, side by side with the plain thing, each round in another order. Compiled Python
files are written to a folder of their own first, as an installed package has them.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.startup_runs import write_run

ROUNDS = 15

_TORCH = "import torch\n"
_SMALL = """\
import torch

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(3):
    optimizer.zero_grad()
    model(torch.randn(16, 8)).pow(2).mean().backward()
    optimizer.step()
"""
_RUNS = {"3 steps": (4, 3, 1), "300 parameters, 1,000 steps": (300, 1000, 1), "100,000 steps": (4, 100_000, 50)}
"""Of the runs to report on: parameters, steps, and every how many of them is recorded."""

_PYTHON = (sys.executable,)
_WHYGRAD = (sys.executable, "-m", "whygrad")


def measure(rounds: int = ROUNDS) -> dict[str, dict[str, float]]:
    """Return what is measured -> median and quartiles, in milliseconds of processor time.

    Keys are "python" and "import whygrad", "import torch" and "run: import torch", "3 steps of a small model" and
    "run: 3 steps of a small model", "report: ..." for each of the runs; and "... adds" for the difference of a pair,
    taken round by round.
    """
    with tempfile.TemporaryDirectory() as folder:
        commands = _commands(Path(folder))
        env = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPYCACHEPREFIX": str(Path(folder, "compiled"))}
        env.pop("PYTHONDONTWRITEBYTECODE", None)
        for command in commands.values():
            _spent_ms(command, folder, env)
        turns = [_turn(commands, folder, env) for _ in range(rounds)]
    taken = {name: [turn[name] for turn in turns] for name in commands}
    taken["import whygrad adds"] = _differences(turns, "python", "import whygrad")
    for name in commands:
        if f"run: {name}" in commands:
            taken[f"run: {name} adds"] = _differences(turns, name, f"run: {name}")
    return {name: _quartiles(values) for name, values in taken.items()}


def _commands(folder: Path) -> dict[str, tuple[str, ...]]:
    programs = {"import torch": _TORCH, "3 steps of a small model": _SMALL}
    commands: dict[str, tuple[str, ...]] = {
        "python": (*_PYTHON, "-c", "pass"),
        "import whygrad": (*_PYTHON, "-c", "import whygrad"),
    }
    for number, (name, program) in enumerate(programs.items()):
        script = folder / f"program{number}.py"
        script.write_text(program, encoding="utf-8")
        commands[name] = (*_PYTHON, str(script))
        commands[f"run: {name}"] = (*_WHYGRAD, "run", "--quiet", str(script))
    for number, (name, (parameters, steps, every)) in enumerate(_RUNS.items()):
        run = folder / f"run{number}"
        write_run(run, parameters=parameters, steps=steps, every=every)
        commands[f"report: {name}"] = (*_WHYGRAD, "report", "--fail-on", "never", str(run))
    return commands


def _turn(commands: Mapping[str, Sequence[str]], folder: str, env: Mapping[str, str]) -> dict[str, float]:
    names = random.sample(list(commands), len(commands))
    return {name: _spent_ms(commands[name], folder, env) for name in names}


def _spent_ms(command: Sequence[str], folder: str, env: Mapping[str, str]) -> float:
    """Run a command, and return the processor time that it took, in milliseconds.

    Raises:
        subprocess.CalledProcessError: It failed.
    """
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, cwd=folder, env=env, stdout=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return 1e3 * (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def _differences(turns: Sequence[Mapping[str, float]], plain: str, watched: str) -> list[float]:
    return [turn[watched] - turn[plain] for turn in turns]


def _quartiles(values: Sequence[float]) -> dict[str, float]:
    low, middle, high = statistics.quantiles(values, n=4)
    return {"median_ms": round(middle, 1), "low_ms": round(low, 1), "high_ms": round(high, 1)}


def main(words: Sequence[str] | None = None) -> int:
    """Measure, and print the result as JSON."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.startup", description=__doc__)
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"2 or more ({ROUNDS})")
    print(json.dumps(measure(parser.parse_args(words).rounds), indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
