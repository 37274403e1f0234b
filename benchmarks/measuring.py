"""All that is measured of one workload."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from benchmarks import default_mode
from benchmarks.habits import HABITS, is_installed
from benchmarks.in_place import KERNELS
from benchmarks.memory import memory
from benchmarks.plans import Plan
from benchmarks.run_files import own_share, stored
from benchmarks.turns import AGAIN, DEFAULT, EVERY, PLAIN, take_turns, workers_of
from benchmarks.workloads import make

_WARM_STEPS = 4  # whygrad traces the first three
_HABIT_WARM_STEPS = 2


def measure(workload: str, plan: Plan) -> dict[str, Any]:
    """Return all that is known about one workload."""
    parameters = list(make(workload).model.parameters())
    ours = _measure_whygrad(workload, plan)
    habits = _measure_habits(workload, plan)
    return {
        "rounds": plan.rounds,
        "habit_rounds": plan.habit_rounds,
        "parameters": len(parameters),
        "megabytes": sum(p.nbytes for p in parameters) / 2**20,
        "largest_mb": max(p.nbytes for p in parameters) / 2**20,
        **ours,
        "variants": ours["variants"] | habits,
        "memory": memory(workload, plan.memory_steps),
        "parts": _measure_parts(workload, plan),
    }


def _measure_whygrad(workload: str, plan: Plan) -> dict[str, Any]:
    with workers_of(workload, (PLAIN, AGAIN, DEFAULT, EVERY)) as workers:
        pieces = default_mode.start(workers[DEFAULT], workers[PLAIN], steps=plan.start_steps, seconds=plan.start_s)
        workers[EVERY].ask(f"run {plan.every_steps}")
        turns = take_turns(workers, plan.rounds, plan.turn_s, _WARM_STEPS)
        place = workers[PLAIN].ask(f"place {plan.place_times}")
        for variant in (DEFAULT, EVERY):
            workers[variant].end()
        said = own_share(workers[DEFAULT].folder)
        written = stored(workers[EVERY].folder, turns.last[EVERY]["gradient_l2"])
    after = turns.whole_ratio(DEFAULT)
    whole = {name: default_mode.whole_run(pieces, after, length) for name, length in default_mode.LENGTHS.items()}
    start = default_mode.first(pieces, plan.start_steps)
    return {
        "plain_ms": turns.step_ms(PLAIN),
        "variants": {AGAIN: turns.ratios(AGAIN), **whole, EVERY: turns.whole_ratio(EVERY)},
        "stored": written,
        "in_place": {name: place[name] for name in KERNELS},
        "default": said
        | {
            "after": after,
            "start_steps": sum(piece.steps for piece in start),
            "start_s": sum(piece.extra_s for piece in start),
            "uncounted": sum(piece.extra_s for piece in pieces) / sum(piece.own_s for piece in pieces),
        },
    }


def _measure_habits(workload: str, plan: Plan) -> dict[str, dict[str, float]]:
    habits = [habit for habit in HABITS if is_installed(habit)]
    with workers_of(workload, (PLAIN, *habits)) as workers:
        turns = take_turns(workers, plan.habit_rounds, plan.habit_turn_s, _HABIT_WARM_STEPS)
    return {habit: turns.ratios(habit) for habit in habits}


def _measure_parts(workload: str, plan: Plan) -> dict[str, Any]:
    numbers = ["--warm", str(plan.every_steps), "--steps", str(plan.parts_steps)]
    words = [sys.executable, "-m", "benchmarks.parts", "--json", *numbers, workload]
    root = Path(__file__).resolve().parent.parent
    done = subprocess.run(
        words, cwd=root, env={**os.environ, "OMP_NUM_THREADS": "1"}, stdout=subprocess.PIPE, check=True, text=True
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found
