"""Who reads `.grad` of an intermediate tensor that keeps none."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

import torch

from whygrad.probe.events import place_as_dict
from whygrad.probe.source import Site, expression, line_place, place_or_none
from whygrad.probe.variables import variable_name

if TYPE_CHECKING:
    from whygrad.probe.session import Session

EVENT = "intermediate_grad_read"
_GRAD_OF = re.compile(r"([A-Za-z_][\w.]*)\.grad\b")


def describe_read(session: Session, tensor: torch.Tensor, site: Site | None) -> None:
    """Note the event, with every name the program has for the tensor and the line that made it."""
    if site is None:
        return
    made = session.tracer.made_at(tensor)
    held = (_attribute_of_module(session, tensor), _name_before_grad(site), variable_name(tensor, session.user))
    names = [name for name in held if name]
    session.events.note(
        EVENT,
        session.training.steps,
        site,
        names[0] if names else "",
        names=list(dict.fromkeys(names)),
        made_at=place_as_dict(place_or_none(made)),
        grad_fn=tensor.grad_fn.name() if tensor.grad_fn is not None else "",
        shape=list(tensor.shape),
        backwards=session.training.backwards,
        retains_grad=tensor.retains_grad,
    )


def _attribute_of_module(session: Session, tensor: torch.Tensor) -> str:
    for named in session.registry.tree():
        for attribute, value in named.module.__dict__.items():
            if value is tensor:
                return f"{named.name}.{attribute}" if named.name else attribute
    return ""


def _name_before_grad(site: Site) -> str:
    node = expression(site)
    for inner in ast.walk(node) if node is not None else ():
        if isinstance(inner, ast.Attribute) and inner.attr == "grad":
            return ast.unparse(inner.value)
    return ""


def describe_warning(session: Session, file: str, line: int) -> None:
    """Note the event from torch's own warning: after the traced steps, this is all there is."""
    if session.tracer.active:
        return
    code = line_place(file, line)
    name = next((m.group(1) for m in _GRAD_OF.finditer(code.code)), "")
    site = session.user.capture()
    session.events.note(
        EVENT, session.training.steps, site, name, names=[name] if name else [], backwards=session.training.backwards
    )
