"""Runs of several ranks built by hand: one wrapped model, whose copies are equal until a test says otherwise."""

from dataclasses import replace

from tests.rules.builders import evidence, info, line, optimizer, parameter
from whygrad.evidence import MemoryMatrices
from whygrad.model import Replica, Role, Statistics, Step

STEPS = 10


def replica(**fields):
    known = {"root": "model", "parameters": (0,), "world_size": 2, "made_at": line(12), "called_at": line(21)}
    counts = {"calls": STEPS, "backwards": STEPS, "steps": STEPS}
    return Replica(id=0, **{**known, **counts, **fields})


def rank(number, weights, gradients, *, replicas=(), rates=None, parameters=None, recorded=None, **fields):
    """Return the evidence of a rank; `weights` and `gradients` hold a series of numbers for each parameter."""
    rates = rates or [(0.1,)] * STEPS
    roles = ((Role.WEIGHT, weights), (Role.GRADIENT, gradients))
    return evidence(
        parameters or [parameter(f"layer{index}.weight", index) for index in range(len(weights))],
        (optimizer(),),
        info=info(rank=number, world_size=2),
        replicas=tuple(replicas),
        steps=tuple(Step(step, 0, float(step), learning_rates=rates[step]) for step in range(STEPS)),
        matrices=MemoryMatrices(
            {
                (step, role): {index: statistics(series[step]) for index, series in enumerate(values)}
                for step in (range(STEPS) if recorded is None else recorded)
                for role, values in roles
            }
        ),
        **fields,
    )


def statistics(value):
    return Statistics(count=1, sum=value, sum_squares=value * value, sum_abs=abs(value), max_abs=abs(value))


def ranks(first, second):
    """Return two ranks from (weights, gradients) of one parameter and keyword arguments for `rank`."""
    return [
        rank(number, [weights], [gradients], **{"replicas": [replica()], **fields})
        for number, (weights, gradients, fields) in enumerate((first, second))
    ]


def same():
    return [1 + step / 10 for step in range(STEPS)]


def apart(since=1):
    return [1 + step / 10 + (0.01 * (step - since + 1) if step >= since else 0) for step in range(STEPS)]


def local(why, **fields):
    """Return a replica that stepped on its own gradients, for a reason."""
    return replica(**{"local_steps": STEPS, "first_local_step": 0, "local_why": why, "local_at": line(22), **fields})


def without_wrapper(found):
    return [replace(each, replicas=()) for each in found]
