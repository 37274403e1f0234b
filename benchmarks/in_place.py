"""What the kernels cost where the probe calls them: between backward and step, on gradients as warm as they will be."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from unittest.mock import patch

import torch

from benchmarks.workloads import Workload

Kernel = Callable[[Sequence[torch.Tensor]], object]

READ = "one read"
STATISTICS = "statistics"
SAMPLED = "with histogram"
FULL = "with full histogram"
LESSON = "two numbers"
KERNELS = (READ, STATISTICS, SAMPLED, FULL, LESSON)


def in_place(workload: Workload, times: int) -> dict[str, float]:
    """Return the processor time of each kernel for all gradients of a step, in seconds (median)."""
    spent: dict[str, list[float]] = {}
    for turn in range(times + 1):
        for name, kernel in _kernels().items():
            workload.optimizer.zero_grad()
            torch.autograd.backward(workload.loss(workload.model(workload.inputs), workload.targets))
            gradients = [p.grad for p in workload.model.parameters() if p.grad is not None]
            with _no_sampling() if name == FULL else nullcontext():
                began = time.process_time()
                kernel(gradients)
                if turn:  # the first one loads what it needs
                    spent.setdefault(name, []).append(time.process_time() - began)
            workload.optimizer.step()
    return {name: statistics.median(values) for name, values in spent.items()}


def _kernels() -> dict[str, Kernel]:
    from whygrad.stats.kernel import measure

    return {
        READ: lambda gradients: [g.sum() for g in gradients],
        STATISTICS: measure,
        SAMPLED: lambda gradients: measure(gradients, histograms=True),
        FULL: lambda gradients: measure(gradients, histograms=True),
        LESSON: lambda gradients: [(g.abs().mean().item(), g.std().item()) for g in gradients],
    }


@contextmanager
def _no_sampling() -> Iterator[None]:
    """Have histograms count every element of large tensors too."""
    from whygrad.stats import fused

    with patch.object(fused, "SAMPLED_ABOVE", 2**62):
        yield
