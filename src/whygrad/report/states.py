"""What became of a parameter, in one or two words."""

from __future__ import annotations

from whygrad.model import Parameter, PathEnd


def state(parameter: Parameter) -> str:
    """Return "learns", or why it does not: "frozen", "unused", "cut", "no gradient", "no optimizer"."""
    if not parameter.requires_grad:
        return "frozen"
    if parameter.path is PathEnd.UNUSED or (parameter.uses == 0 and not parameter.gradient_steps):
        return "unused"
    if not parameter.gradient_steps:
        return "cut" if parameter.path is PathEnd.CUT else "no gradient"
    return "learns" if parameter.optimizers else "no optimizer"
