"""The results as Markdown: the page of the benchmark, and the short table of the README."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

TARGETS = {
    "whygrad": {"tiny MLP 4-8-2": 1.10, "": 1.02},
    "whygrad --every 1": {"ResNet-18, 32x32": 1.05, "decoder, 6 layers": 1.05, "MLP 784-512-512-10": 1.13},
}
"""Ratio to the plain loop that is aimed at, by workload; "" for all others."""
KERNEL_TARGETS = {"statistics": 1.5, "with histogram": 2.5}


_INTRODUCTION = """\
Written by `make bench`. Ratio of the time of a step to that of the plain loop: median (quartiles). *Plain again* is the
plain loop itself: by how much it differs from 1 is noise. {rounds} rounds; {machine}; one thread."""
_KERNELS = """\
Time for the gradients of all parameters, measured between backward and step, as a multiple of one read of them (`sum`).
The aim is {} for the statistics, {} with the histogram."""
_STORAGE = """\
With `--every 1`. A row is one tensor in one role: gradient, weight, update, output, its gradient; 64 bytes of
statistics, and 128 of histogram for the gradients of parameters."""


def markdown(results: Mapping[str, Any]) -> str:
    """Return the whole page."""
    machine = ", ".join(f"{key} {value}" for key, value in results["machine"].items())
    parts = [
        "# What watching costs",
        _INTRODUCTION.format(rounds=results["rounds"], machine=machine),
        ratio_table(results, quartiles=True),
        "## Kernels",
        _KERNELS.format(*KERNEL_TARGETS.values()),
        kernel_table(results),
        "## Memory and disk",
        _STORAGE,
        storage_table(results),
    ]
    return "\n\n".join(parts)


def ratio_table(results: Mapping[str, Any], *, quartiles: bool) -> str:
    """Return the ratios, a line for each variant and a column for each workload."""
    workloads = results["workloads"]
    variants = list(dict.fromkeys(variant for each in workloads.values() for variant in each["variants"]))
    rows = [
        [variant, *(_cell(variant, name, each["variants"].get(variant), quartiles) for name, each in workloads.items())]
        for variant in variants
        if quartiles or variant != "plain again"
    ]
    plain = ["plain loop, ms a step", *(f"{each['plain_ms']:.3g}" for each in workloads.values())]
    return _table(["", *workloads], [plain, *rows])


def kernel_table(results: Mapping[str, Any]) -> str:
    """Return what the kernels need."""
    rows = [
        [
            name,
            f"{each['megabytes']:.1f}",
            f"{each['in_place']['read_ms']:.3g}",
            *(f"{each['in_place'][key]:.2f}" for key in ("statistics", "with histogram", "two numbers")),
        ]
        for name, each in results["workloads"].items()
    ]
    return _table(["", "MB", "one read, ms", "statistics", "with histogram", "the lesson's two numbers"], rows)


def storage_table(results: Mapping[str, Any]) -> str:
    """Return what recording every step stores and holds."""
    rows = []
    for name, each in results["workloads"].items():
        every = each["variants"]["whygrad --every 1"]
        rows.append(
            [
                name,
                f"{every['stored_bytes']:.0f}",
                f"{every['stored_bytes_a_row']:.0f}",
                f"{every['added_mb']:+.0f}",
                f"{each['largest_mb']:.1f}",
            ]
        )
    return _table(["", "bytes a step", "bytes a row", "peak memory, MB", "largest parameter, MB"], rows)


def _cell(variant: str, workload: str, found: Mapping[str, float] | None, quartiles: bool) -> str:
    if found is None:
        return "-"
    targets = TARGETS.get(variant, {})
    target = targets.get(workload, targets.get(""))
    aim = "" if target is None else f", aim {target:.2f}"
    middle = f"{found['ratio']:.2f}"
    return f"{middle} ({found['low']:.2f}-{found['high']:.2f}{aim})" if quartiles else middle


def _table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
