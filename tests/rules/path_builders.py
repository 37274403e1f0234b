"""Runs in which paths end: parameters that a cut, an exception or the program's own text keeps from learning."""

from tests.rules.builders import check, event, evidence, info, line, optimizer, parameter
from whygrad.model import Cut, CutKind, PathEnd, Raised, Role, Statistics, Total

LEARNS = parameter("head.weight", 0, path=PathEnd.REACHED)


def lost(name, id, path=PathEnd.CUT, **fields):
    """Return a parameter that got no gradient by any path."""
    return parameter(name, id, **{"reached": 0, "gradient_steps": 0, "path": path, **fields})


def cut(parameter, kind=CutKind.DETACH, operation="detach", number=40, **fields):
    """Return a cut of the path to the parameter with an id, at a line."""
    known = {"id": number, "parameter": parameter, "kind": kind, "operation": operation, "place": line(number)}
    return Cut(**{**known, **fields})


def stopped(reason, **fields):
    """Return the facts about a run that an exception of autograd ended at line 60."""
    known = {"type": "RuntimeError", "message": "", "place": line(60), "reason": reason, **fields}
    return info(raised=Raised(**known), steps=0)


def lost_term(*parameters, kind=CutKind.COPY, operation="tensor", number=49, **detail):
    """Return the event of a term of the loss that depends on parameters and gives them no gradient."""
    known = {"cut": kind.value, "parameters": list(parameters), **detail}
    return event("lost_term", place=line(number), subject=operation, count=3, **known)


def zeros(*parameters, steps=10, zero_steps=10):
    """Return the totals of gradients that were zero at so many of the recorded steps."""
    measured = Statistics(count=16, zeros=16)
    counted = {"steps": steps, "zero_steps": zero_steps, "statistics": measured}
    return tuple(Total(Role.GRADIENT, number, **counted) for number in parameters)


def found(slug, parameters=(), cuts=(), **fields):
    """Return what a rule says about a run in which `head.weight` learns beside the given parameters."""
    given = {"optimizers": (optimizer(),), "cuts": tuple(cuts), **fields}
    return check(slug, evidence([LEARNS, *parameters], **given))
