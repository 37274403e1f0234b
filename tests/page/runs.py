"""Runs built by hand that a page can show."""

import math

from tests.report.builders import Shown, finding, info, parameter, place
from whygrad.evidence import Evidence, MemoryMatrices
from whygrad.model import (
    Clip,
    Cut,
    CutKind,
    Deed,
    Event,
    Happening,
    Module,
    Optimizer,
    Output,
    PathEnd,
    Role,
    Round,
    Statistics,
    Step,
    Total,
)

HOSTILE = '</script><img src=x onerror="document.title=1">{{ 7*7 }}'


def statistics(size, count=8):
    """Statistics of elements that all have this size."""
    if math.isnan(size):
        return Statistics(count=count, nans=count)
    return Statistics(count, count * size, count * size**2, count * size, size, count * (size == 0))


def matrices(sizes, steps, outputs=()):
    """sizes: (id, step) -> size of the gradient, None: no gradient."""
    values = {}
    for step in steps:
        gradients = {i: statistics(size(step)) for i, size in sizes.items() if size(step) is not None}
        values[step, Role.GRADIENT] = gradients
        values[step, Role.WEIGHT] = {i: statistics(0.1) for i in sizes}
        values[step, Role.UPDATE] = {i: statistics(1e-4) for i in gradients}
        values[step, Role.OUTPUT] = {i: statistics(1.0) for i in outputs}
        values[step, Role.OUTPUT_GRADIENT] = {i: statistics(1e-3) for i in outputs}
    counts = {(step, Role.GRADIENT): dict.fromkeys(sizes, (0,) * 10 + (5, 3) + (0,) * 20) for step in steps}
    return MemoryMatrices(values, counts)


def failing_run(names=("body.weight", "head.weight"), steps=20, findings=None, notes=()):
    """A run whose last parameter is cut off and whose first one shrinks."""
    last = len(names) - 1
    sizes = {i: (lambda step, i=i: None if i == last else 10.0 ** -(i + step / steps)) for i in range(len(names))}
    parameters = tuple(
        parameter(name, i, order=i, root="model", module=name.rpartition(".")[0], attribute=name.rpartition(".")[2])
        if i != last
        else parameter(name, i, order=i, gradient_steps=0, path=PathEnd.CUT, root="model", attribute="weight")
        for i, name in enumerate(names)
    )
    total = Total(Role.GRADIENT, 0, steps=steps, statistics=statistics(0.1))
    evidence = Evidence(
        info=info(steps=steps, recorded_steps=steps, duration_s=10.0, own_s=0.1),
        modules=(Module(0, "", "model", "Net"), Module(1, "body", "model", "Linear", place(7), 0, 3, True)),
        parameters=parameters,
        cuts=(Cut(0, last, CutKind.DETACH, "detach", place(41)),),
        outputs=(Output(0, "body", 1, 0, (2, 4), "float32", calls=3),),
        steps=tuple(Step(i, 0, i * 0.1, loss=1.0 / (i + 1), learning_rates=(0.1,)) for i in range(steps)),
        optimizers=(Optimizer(0, "optimizer", "SGD"),),
        rounds=(Round(0, 0, 1, 0, 0, first=True), Round(1, 0, 4, 3, 9)),
        happenings=(Happening(1, 0, Deed.BACKWARD, place(11), 2), Happening(1, 1, Deed.STEP, place(13))),
        clips=(Clip(0, "norm", place(12), calls=9, measured=9, clipped=4, factor=2.5, limit=1.0),),
        events=(Event("nonfinite_loss", 5, 9, 4, "", place(12)),),
        totals=(total,),
        matrices=matrices(sizes, range(steps), outputs=(0,)),
    )
    given = findings
    if given is None:
        given = (finding("detached", tensors=(names[-1],), place=place(41), message=f"`{names[-1]}` is cut off"),)
    return Shown((evidence,), tuple(given), tuple(notes))
