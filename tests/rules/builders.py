"""Runs built by hand, for the tests of rules: a model of which everything learns, until a test says otherwise."""

from whygrad.evidence import Evidence, MemoryMatrices
from whygrad.model import (
    Event,
    Module,
    Optimizer,
    Parameter,
    Place,
    Raised,
    Role,
    RunInfo,
    Statistics,
    Step,
)
from whygrad.rules import all_rules


def line(number=1, file="train.py", code=""):
    return Place(file, number, code=code)


def parameter(name, id, **fields):
    """Return a parameter of the model `model`, held by optimizer 0, with a gradient in each of 10 steps."""
    *owner, attribute = name.split(".")
    learning = {
        "shape": (4, 4),
        "dtype": "float32",
        "root": "model",
        "module": ".".join(owner),
        "module_type": "Linear",
        "attribute": attribute,
        "optimizers": (0,),
        "made_at": line(2),
        "reached": 10,
        "walked": 10,
        "steps": 10,
        "gradient_steps": 10,
        "uses": 3,
    }
    return Parameter(id=id, name=name, **{**learning, **fields})


def untouched(name, id, **fields):
    """Return a parameter that no operation took as input."""
    return parameter(name, id, **{"reached": 0, "gradient_steps": 0, "uses": 0, **fields})


def outsider(name, id, **fields):
    """Return a parameter that gets gradients and that no optimizer holds."""
    return parameter(name, id, **{"optimizers": (), **fields})


def optimizer(id=0, **fields):
    stepping = {"name": "optimizer", "type": "SGD", "made_at": line(20), "stepped_at": line(30), "steps": 10}
    return Optimizer(id=id, **{**stepping, "learning_rates": (0.1,), "last_learning_rates": (0.1,), **fields})


def never_stepped(id=0, **fields):
    return optimizer(id, **{"steps": 0, "stepped_at": None, "zero_grads": 10, **fields})


def module(name, id, **fields):
    return Module(id=id, name=name, **{"root": "model", "type": "Linear", "order": id, "training": True, **fields})


def info(**fields):
    return RunInfo(**{"script": "train.py", "steps": 10, "backwards": 10, "forwards": 10, "ended": True, **fields})


def raised(message, type="RuntimeError", reason=""):
    return Raised(type, message, line(25), reason)


def event(kind, *, place=None, subject="", count=1, first=0, last=0, **detail):
    return Event(kind, first, last, count, subject, place, detail)


def weights(*values):
    """Return matrices in which parameter `id` has the weights `values[id]`, one number a step."""
    steps = range(len(values[0]))
    return MemoryMatrices(
        {(step, Role.WEIGHT): {number: _of(series[step]) for number, series in enumerate(values)} for step in steps}
    )


def updates(*values):
    """Return matrices in which parameter `id` was changed by `values[id]`, one number a step."""
    steps = range(len(values[0]))
    return MemoryMatrices(
        {(step, Role.UPDATE): {number: _of(series[step]) for number, series in enumerate(values)} for step in steps}
    )


def _of(size):
    return Statistics(count=1, sum=size, sum_squares=size * size, sum_abs=abs(size), max_abs=abs(size))


def steps(rates, optimizer=0):
    """Return a step for each tuple of learning rates."""
    return tuple(Step(number, optimizer, float(number), 1, 0.5, tuple(each), True) for number, each in enumerate(rates))


def evidence(parameters=(), optimizers=(), **fields):
    return Evidence(**{"info": info(), "parameters": tuple(parameters), "optimizers": tuple(optimizers), **fields})


def check(slug, evidence):
    return list(all_rules()[slug].check(evidence))
