"""Loops built by hand, for the tests of rules: rounds written as they read."""

from tests.rules.builders import evidence, line, optimizer, parameter
from whygrad.model import Clip, Deed, Happening, LossScale, Mark, Round, Step

CLEAR, BACKWARD, STEP = 10, 11, 12  # lines of the usual loop


def did(deed, number=0, of=(0,), marks=(), times=1):
    """Return a happening at a line, of optimizers."""
    return (Deed(deed), line(number) if number else None, times, tuple(of), tuple(Mark(mark).value for mark in marks))


def clear(number=CLEAR, **fields):
    return did("clear", number, **fields)


def backward(number=BACKWARD, **fields):
    return did("backward", number, **fields)


def step(number=STEP, **fields):
    return did("step", number, **fields)


def loop(*rounds, parameters=None, optimizers=None, **fields):
    """Return evidence of rounds, each `(count, [happening, ...])` or `(count, [...], {field of Round: value})`."""
    made, happenings = [], []
    for number, (count, happened, *traits) in enumerate(rounds):
        known = {"optimizer": 0, "first_step": number, "last_step": number + count, **(traits[0] if traits else {})}
        made.append(Round(id=number, count=count, **known))
        happenings += [Happening(number, position, *each) for position, each in enumerate(happened)]
    return evidence(
        (parameter("weight", 0),) if parameters is None else parameters,
        (optimizer(0),) if optimizers is None else optimizers,
        rounds=tuple(made),
        happenings=tuple(happenings),
        **fields,
    )


def two(**fields):
    """Return two optimizers and a parameter of each."""
    optimizers = (optimizer(0, name="opt_g", made_at=line(1)), optimizer(1, name="opt_c", made_at=line(2)))
    parameters = (parameter("generator.weight", 0), parameter("critic.weight", 1, optimizers=(1,)))
    return {"optimizers": optimizers, "parameters": parameters, **fields}


def clip(number=20, **fields):
    known = {"kind": "norm", "optimizers": (0,), "calls": 10, "measured": 10, "clipped": 10, "factor": 100.0}
    return Clip(id=0, place=line(number), **{**known, "limit": 1.0, "norm": 100.0, **fields})


def loss_scale(number=BACKWARD, **fields):
    return LossScale(id=0, place=line(number), **{"passes": 10, "factor": 1.0, "mean": True, **fields})


def sized(update, weight=1.0, *, backward=None, gradient=1.0, losses=None, count=10):
    """Return recorded steps with these norms."""
    given = losses or [1.0] * count
    return tuple(
        Step(number, 0, float(number), 1, loss, (0.1,), True, gradient, weight, update, backward)
        for number, loss in enumerate(given)
    )
