"""Small programs with what the tracer must say about their tensors.

Comments mark lines: `<-` where the path ends (every cut must be on such a line), `off` where grad mode was switched
off, `back` where a value that left torch comes back.
"""

from __future__ import annotations

import copy
import math
import threading
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

from tests.dataflow.tracing import Trace, marked, program
from whygrad.model import CutKind
from whygrad.model import PathEnd as PathKind
from whygrad.probe.dataflow import PathEnd


@dataclass(frozen=True)
class Expect:
    """The answer for one tensor."""

    path: PathKind
    cut: CutKind | None = None
    operation: str | None = None  # of the first cut, or where the path ends; None: not looked at
    within: str | None = None
    mode: str | None = None  # part of the text that switched grad mode off
    inferred: bool = False
    distance: int | None = None


@dataclass(frozen=True)
class Case:
    """A program, and the answers by the expressions that name its tensors."""

    text: str
    expect: dict[str, Expect] = field(default_factory=dict)


def cut(kind: str, operation: str | None = None, **more: Any) -> Expect:
    return Expect(PathKind.CUT, CutKind(kind), operation, **more)


def ends(kind: str, operation: str | None = None, **more: Any) -> Expect:
    return Expect(PathKind(kind), None, operation, **more)


REACHED = Expect(PathKind.REACHED)
UNUSED = Expect(PathKind.UNUSED)


class Two(nn.Module):
    """Two layers with something between them."""

    def __init__(self, middle):
        super().__init__()
        self.enc = nn.Linear(4, 4)
        self.head = nn.Linear(4, 4)
        self.middle = middle

    def forward(self, x):
        return self.head(self.middle(self.enc(x)))


def names() -> dict[str, Any]:
    """Return what every program may use."""
    torch.manual_seed(0)
    x = torch.randn(6, 4)
    space = {"torch": torch, "nn": nn, "F": F, "np": np, "copy": copy, "math": math, "threading": threading}
    return space | {"checkpoint": checkpoint, "Two": Two, "X": x, "Y": torch.arange(6) % 4, "__name__": "program"}


def check(case: Case, path: Path) -> None:
    """Run a program under the tracer and compare the answers."""
    trace = Trace()
    space = names()
    code = program(case.text, path)
    try:
        with trace.on(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            exec(code, space)  # noqa: S102 - programs are texts, so that their lines can be marked
            answers = {name: trace.explain(eval(name, space)) for name in case.expect}  # noqa: S307
    finally:
        trace.flow.switch_off()
    for name, expected in case.expect.items():
        problems = list(_differences(answers[name], expected, path))
        assert not problems, f"{name}: {'; '.join(problems)}\n{answers[name]}"


def _differences(answer: PathEnd, expected: Expect, path: Path) -> Any:
    def differs(what: str, got: object, wanted: object) -> Any:
        if wanted is not None and got != wanted:
            yield f"{what} is {got!r}, not {wanted!r}"

    yield from differs("path", answer.kind, expected.path)
    end: Any = answer.cuts[0] if answer.cuts else answer
    yield from differs("operation", end.operation, expected.operation)
    yield from differs("within", end.within, expected.within)
    lines = {c.place and c.place.line for c in answer.cuts} or {answer.ends_at and answer.ends_at.line}
    if answer.kind is not PathKind.REACHED and (wanted := marked(path, "<-")) and lines != {None}:
        yield from differs("lines", lines - wanted, set())
    if expected.cut is not None and answer.cuts:
        yield from differs("kind", end.kind, expected.cut)
        yield from differs("inferred", end.inferred, expected.inferred)
        yield from differs("distance", end.distance, expected.distance)
        yield from differs("mode", expected.mode is None or expected.mode in end.mode_text, True)
        for mark, place in (("off", end.mode_place), ("back", end.reentry)):
            if wanted := marked(path, mark):
                yield from differs(mark, place is not None and place.line in wanted, True)
