"""What watching adds to the memory that a run needs at its peak, and whether batch and steps change it.

The code of whygrad itself counts apart: the plain loop imports it too. Large tensors get pages of their own, which go
back when they are freed, so that the peak is what was in use, and not what the allocator happened to keep.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from benchmarks.turns import EVERY, PLAIN, worker

_PAGES = {"MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_TRIM_THRESHOLD_": "65536"}
_BATCHES = (1, 2)
_AT_ONCE = 2  # processes: nothing is timed here


def memory(workload: str, steps: int) -> dict[str, float]:
    """Return what `--every 1` adds at the peak, in MB: as it is, at three times the steps, at twice the batch."""
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        watched = list(pool.map(lambda batches: _peaks(workload, EVERY, batches, steps), _BATCHES))
        modules = watched[0].modules
        plain = list(pool.map(lambda batches: _peaks(workload, PLAIN, batches, steps, modules), _BATCHES))
    (once, twice), (base, wide) = watched, plain
    return {
        "added_mb": once.peak_mb - base.peak_mb,
        "steps_mb": once.later_mb - base.later_mb,
        "batch_mb": twice.later_mb - wide.later_mb,
        "code_mb": base.code_mb,
    }


@dataclass(frozen=True, slots=True)
class _Peaks:
    peak_mb: float
    later_mb: float  # at three times the steps
    code_mb: float  # of what was imported for nothing
    modules: list[str]


def _peaks(workload: str, variant: str, batches: int, steps: int, imported: Sequence[str] = ()) -> _Peaks:
    with worker(workload, variant, batches=batches, environment=_PAGES) as each:
        before: float = each.ask("modules")["peak_mb"]
        after: float = each.ask(f"import {' '.join(imported)}")["peak_mb"]
        peak: float = each.ask(f"run {steps}")["peak_mb"]
        later: float = each.ask(f"run {2 * steps}")["peak_mb"]
        return _Peaks(peak, later, after - before, each.ask("modules")["modules"])
