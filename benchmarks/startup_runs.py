"""Run files of healthy runs of any size, for measuring how long a report takes."""

from __future__ import annotations

import math
import struct
from pathlib import Path

from whygrad.model import Group, Module, Optimizer, Output, Parameter, PathEnd, Role, RunInfo, Statistics, Step, Total
from whygrad.runfile.writer import RunWriter

_ELEMENTS = 64
_SIZES = {  # root mean squares
    Role.GRADIENT: 1e-2,
    Role.WEIGHT: 0.1,
    Role.UPDATE: 1e-4,
    Role.OUTPUT: 1.0,
    Role.VARIATION: 0.5,
    Role.OUTPUT_GRADIENT: 1e-3,
}


def write_run(folder: Path, *, parameters: int, steps: int, every: int) -> None:
    """Write a run of as many linear layers as there are parameters, of which each `every`-th step is recorded."""
    ids = range(parameters)
    recorded = len(range(0, steps, every))
    info = RunInfo("train.py", steps=steps, recorded_steps=recorded, backwards=steps, forwards=steps, ended=True)
    writer = RunWriter(folder / "rank0.whygrad", info)
    writer.put(Optimizer(0, "optimizer", "SGD", steps=steps, parameters=parameters, learning_rates=(0.01,)))
    writer.put(Group(0, 0, 0, tuple(ids), learning_rate=0.01, steps=steps))
    for number in ids:
        _put_layer(writer, number, steps)
    matrices = {role: _rows(size, parameters) for role, size in _SIZES.items()}
    for step in range(steps):
        is_recorded = step % every == 0
        loss = 0.1 + math.exp(-3 * step / steps)
        writer.add_step(
            Step(step, 0, 0.01 * step, backwards=1, loss=loss, learning_rates=(0.01,), recorded=is_recorded)
        )
        for role, rows in matrices.items() if is_recorded else ():
            writer.add_matrix(step, role, ids, rows)
    writer.put_totals(Total(role, n, recorded, statistics=_of(size)) for role, size in _SIZES.items() for n in ids)
    writer.close()


def _put_layer(writer: RunWriter, number: int, steps: int) -> None:
    name = f"layers.{number}"
    writer.put(Module(number, name, "model", "Linear", order=number, calls=steps, training=True))
    writer.put(Output(number, name, number, number, (8, 8), "float32", calls=steps, gradient_calls=steps))
    writer.put(
        Parameter(
            number,
            f"{name}.weight",
            (8, 8),
            "float32",
            module=name,
            root="model",
            module_type="Linear",
            order=number,
            optimizers=(0,),
            requires_grad=True,
            steps=steps,
            gradient_steps=steps,
            reached=steps,
            walked=steps,
            uses=steps,
            path=PathEnd.REACHED,
        )
    )


def _of(size: float) -> Statistics:
    return Statistics(_ELEMENTS, 0.0, _ELEMENTS * size * size, _ELEMENTS * 0.8 * size, 3 * size)


def _rows(size: float, count: int) -> bytes:
    one = _of(size)
    values = (one.count, one.sum, one.sum_squares, one.sum_abs, one.max_abs, one.zeros, one.nans, one.infs)
    return struct.pack(f"<{len(values)}d", *values) * count
