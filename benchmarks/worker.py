"""One program that is timed: it takes orders on its standard input, one a line, and answers in JSON.

    python worker.py WORKLOAD VARIANT BATCHES

    run N       make N steps, and tell the processor time of one
    check       make a step, and have the hooks' numbers checked
    place N     measure N times what reading the gradients costs between backward and step
    modules     tell which modules of whygrad are imported
    import A B  import modules

It ends with its input. Its clock stands still while it waits: whygrad keeps its budget by the clock, and must not take
the turns of others for time in which the program trained.
"""

from __future__ import annotations

import importlib
import json
import math
import os
import resource
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.clock import TurnClock

_CLOCK = TurnClock()
if __name__ == "__main__":  # before torch is imported, which is when whygrad binds the clock
    time.perf_counter = _CLOCK

import torch  # noqa: E402

from benchmarks.habits import HABITS, Installed, nothing  # noqa: E402
from benchmarks.in_place import in_place  # noqa: E402
from benchmarks.workloads import Workload, make  # noqa: E402

_LARGEST_KEPT = 32 * 2**20 - 2**16  # bytes: above 32 MB glibc always hands back
_WATCHERS = ("whygrad.probe", "whygrad.stats", "whygrad.runfile")


def main() -> None:
    """Obey until the input ends."""
    torch.set_num_threads(1)
    if "MALLOC_MMAP_THRESHOLD_" not in os.environ:  # set where memory is measured: nothing may hide a peak
        _settle_allocator()
    name, variant, batches = sys.argv[1:]
    workload = make(name, int(batches))
    habit = HABITS.get(variant, nothing)(workload)
    check_clock()
    while order := _wait().split():
        answer = obey(workload, habit, order[0], order[1:])
        answer |= watched()
        answer["peak_mb"] = _peak_mb()
        print(json.dumps(answer), flush=True)


def _peak_mb() -> float:
    """Return the most memory that this program has had, in MB.

    `ru_maxrss` begins with what the process that started this one had: Linux keeps it across `exec`.
    """
    status = Path("/proc/self/status")
    lines = status.read_text(encoding="ascii").splitlines() if status.exists() else []
    peaks = [int(line.split()[1]) for line in lines if line.startswith("VmHWM:")]
    return (peaks[0] if peaks else resource.getrusage(resource.RUSAGE_SELF).ru_maxrss) / 1024


def _settle_allocator() -> None:
    """Free a large block once, so that every variant keeps the memory of its tensors from step to step.

    glibc hands large blocks back to the system until one of that size has been freed. Whatever a variant happened to
    free at its start would make its steps faster than those of the plain loop, by eight percent for the MLP.
    """
    torch.empty(_LARGEST_KEPT, dtype=torch.uint8).fill_(0)


def _wait() -> str:
    with _CLOCK.stopped():
        return sys.stdin.readline()


def check_clock() -> None:
    """Check that whygrad goes by our clock, where it watches."""
    session = sys.modules.get("whygrad.probe.session")
    assert session is None or session._clock is _CLOCK, "whygrad's clock would run while others have their turn"


def obey(workload: Workload, habit: Installed, order: str, words: list[str]) -> dict[str, Any]:
    """Return the answer to an order."""
    match order:
        case "run":
            return {"step_s": run(workload, habit, int(words[0]))}
        case "place":
            return in_place(workload, int(words[0]))
        case "modules":
            return {"modules": [name for name in sys.modules if name.startswith(_WATCHERS)]}
        case "import":
            for name in words:
                importlib.import_module(name)
            return {}
        case _:
            habit.check(train(workload, habit))
            return {"gradient_l2": gradient_l2(workload)}


def train(workload: Workload, habit: Installed) -> torch.Tensor:
    """Make one step, and return the model's output."""
    workload.optimizer.zero_grad()
    output = habit.backward()
    workload.optimizer.step()
    return output


def run(workload: Workload, habit: Installed, steps: int) -> float:
    """Return the processor time of a step, in seconds."""
    began = time.process_time()
    for _ in range(steps):
        train(workload, habit)
    spent: float = time.process_time() - began
    return spent / steps


def gradient_l2(workload: Workload) -> float:
    """Return the norm over all gradients of the last step."""
    squares = sum(p.grad.double().square().sum().item() for p in workload.model.parameters() if p.grad is not None)
    return math.sqrt(squares)


def watched() -> dict[str, Any]:
    """Return what whygrad says of itself, where it watches."""
    if "whygrad.probe.session" not in sys.modules:
        return {}
    from whygrad.probe.session import active_session

    session = active_session()
    return {} if session is None else {"own_s": session.guard.own_s, "recorded": session.training.recorded_steps}


if __name__ == "__main__":
    main()
