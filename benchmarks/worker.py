"""One program that is timed: it takes orders on its standard input, one a line, and answers in JSON.

    python worker.py WORKLOAD HABIT

`run N` makes N steps and tells the processor time of one, `check` has the hooks' numbers checked, `place N` measures N
times what reading the gradients costs between backward and step. It ends with its input.
"""

from __future__ import annotations

import json
import resource
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import torch

from benchmarks.habits import HABITS, nothing
from benchmarks.workloads import Workload, make


def main() -> None:
    """Obey until the input ends."""
    torch.set_num_threads(1)
    workload = make(sys.argv[1])
    check, after_backward = HABITS.get(sys.argv[2], nothing)(workload)
    for line in sys.stdin:
        order, *number = line.split()
        many = int(number[0]) if number else 1
        if order == "run":
            answer: dict[str, Any] = {"step_s": run(workload, after_backward, many)}
        elif order == "place":
            answer = in_place(workload, many)
        else:
            train(workload, after_backward)
            check()
            answer = {"gradient_l2": gradient_l2(workload)}
        answer["peak_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(json.dumps(answer), flush=True)


def train(workload: Workload, after_backward: Callable[[], None]) -> None:
    """Make one step."""
    workload.optimizer.zero_grad()
    workload.loss(workload.model(workload.inputs), workload.targets).backward()
    after_backward()
    workload.optimizer.step()


def run(workload: Workload, after_backward: Callable[[], None], steps: int) -> float:
    """Return the processor time of a step."""
    began = time.process_time()
    for _ in range(steps):
        train(workload, after_backward)
    return (time.process_time() - began) / steps


def gradient_l2(workload: Workload) -> float:
    """Return the norm over all gradients of the last step."""
    squares = sum(p.grad.double().square().sum().item() for p in workload.model.parameters() if p.grad is not None)
    return float(squares) ** 0.5


def in_place(workload: Workload, times: int) -> dict[str, Any]:
    """Measure kernels between backward and step, where the gradients are as warm as they will be."""
    from whygrad.stats.kernel import measure

    kernels: dict[str, Callable[[list[torch.Tensor]], object]] = {
        "read pass": lambda gradients: [g.sum() for g in gradients],
        "statistics": measure,
        "with histogram": lambda gradients: measure(gradients, histograms=True),
        "two numbers": lambda gradients: [(g.abs().mean().item(), g.std().item()) for g in gradients],
    }
    spent: dict[str, list[float]] = {name: [] for name in kernels}
    for _ in range(times):
        for name, kernel in kernels.items():
            workload.optimizer.zero_grad()
            workload.loss(workload.model(workload.inputs), workload.targets).backward()
            gradients = [p.grad for p in workload.model.parameters() if p.grad is not None]
            began = time.process_time()
            kernel(gradients)
            spent[name].append(time.process_time() - began)
            workload.optimizer.step()
    return {name: statistics.median(values) for name, values in spent.items()}


if __name__ == "__main__":
    main()
