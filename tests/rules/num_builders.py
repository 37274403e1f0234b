"""Runs of which the numbers count: layers in a chain, and the size of every tensor at every step."""

import math

from tests.rules.builders import event, info, line, optimizer
from whygrad.evidence import Evidence, MemoryMatrices
from whygrad.model import Module, Output, Parameter, Role, Statistics, Step, Total

G, W, U = Role.GRADIENT, Role.WEIGHT, Role.UPDATE
OUT, OG = Role.OUTPUT, Role.OUTPUT_GRADIENT

NONE = "none"  # nothing was recorded


def sized(size, count=16):
    """Return the statistics of a tensor whose elements are all equal to `size`."""
    if math.isnan(size):
        return Statistics(count=count, nans=count)
    if math.isinf(size):
        return Statistics(count=count, infs=count)
    return Statistics(
        count=count,
        sum=size * count,
        sum_squares=size * size * count,
        sum_abs=abs(size) * count,
        max_abs=abs(size),
        zeros=count if size == 0 else 0,
    )


def mixed(zeros, size=1.0, count=16):
    """Return the statistics of a tensor of which some elements are zero and the others plus and minus `size`."""
    alive = count - zeros
    return Statistics(count, 0.0, alive * size * size, alive * size, size if alive else 0.0, zeros)


def layer(name, kind="Linear", attributes=("weight",), **fields):
    return name, kind, attributes, fields


def activation(name, kind="ReLU"):
    return layer(name, kind, ())


def run(layers, sizes=None, *, steps=12, losses=None, **fields):
    """Return the evidence of a model `model` of layers that call each other in a chain.

    Args:
        layers: What `layer` returns, in forward order.
        sizes: (role, name) -> a size, statistics, NONE, or a function of the step that returns one of them; "*" for
            every tensor of a role; 1.0 (0.01 for updates) where nothing is said.
        steps: Recorded steps.
        losses: One for each step; 1.0 throughout by default.
        **fields: Of the evidence.
    """
    sizes = sizes or {}
    modules, outputs, parameters = [], [], []
    for order, (name, kind, attributes, extra) in enumerate(layers):
        modules.append(Module(order, name, "model", kind, line(100 + order), order, steps, training=True))
        outputs.append(Output(order, name, order, order, (4, 4), "float32", steps, gradient_calls=steps))
        for attribute in attributes:
            made = _parameter(name, kind, attribute, order, steps)
            parameters.append(Parameter(**{**made, "id": len(parameters), **extra}))
    named = {G: parameters, W: parameters, U: parameters, OUT: outputs, OG: outputs}
    values = {
        (step, role): {t.id: m for t in tensors if (m := _measured(sizes, role, t.name, step)) is not None}
        for step in range(steps)
        for role, tensors in named.items()
    }
    losses = [1.0] * steps if losses is None else losses
    return Evidence(
        **{
            "info": info(steps=steps, backwards=steps, recorded_steps=steps, traced_steps=3),
            "modules": tuple(modules),
            "parameters": tuple(parameters),
            "outputs": tuple(outputs),
            "optimizers": (optimizer(steps=steps),),
            "steps": tuple(Step(number, 0, 0.0, 1, loss, (0.1,), True) for number, loss in enumerate(losses)),
            "events": (event("backward", place=line(50), count=steps),),
            "totals": tuple(_totals(values)),
            "matrices": MemoryMatrices(values),
            **fields,
        }
    )


def _parameter(name, kind, attribute, order, steps):
    return {
        "name": f"{name}.{attribute}",
        "shape": (4, 4) if attribute.startswith("weight") else (4,),
        "dtype": "float32",
        "root": "model",
        "module": name,
        "module_type": kind,
        "attribute": attribute,
        "optimizers": (0,),
        "made_at": line(10 + order),
        "used_at": line(30 + order),
        "order": order,
        "reached": steps,
        "walked": steps,
        "steps": steps,
        "gradient_steps": steps,
        "uses": 3,
        "rows": 4,
    }


def _measured(sizes, role, name, step):
    given = sizes.get((role, name), sizes.get((role, "*"), 0.01 if role is U else 1.0))
    given = given(step) if callable(given) else given
    if given is NONE:
        return None
    return given if isinstance(given, Statistics) else sized(given)


def _totals(values):
    found = {}
    for (step, role), measured in sorted(values.items()):
        for number, each in measured.items():
            found.setdefault((role, number), []).append((step, each))
    for (role, number), each in found.items():
        broken = [step for step, m in each if m.nonfinite]
        zeros = sum(m.zeros == m.count for _, m in each)
        total = sum((m for _, m in each), Statistics())
        yield Total(role, number, len(each), zeros, len(broken), min(broken, default=None), total)
