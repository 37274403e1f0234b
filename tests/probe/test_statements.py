"""Names that a line writes, assigns and calls on."""

import ast
from dataclasses import dataclass

import pytest
import torch
from torch import nn

from whygrad.probe.postmortem.statements import (
    assigned,
    attributes,
    receiver,
    short_name,
    statement_at,
    value_of,
    written,
)
from whygrad.probe.source import Site


def parse(source):
    return ast.parse(source).body[0]


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("h /= 2", "h"),
        ("self.h += 1", "h"),
        ("rows[:, 4] += 1", "rows"),
        ("x[mask] = 0", "x"),
        ("model.bias.data[0] = 1", "data"),
        ("h.mul_(2)", "h"),
        ("y = h.view(-1).clamp_(min=0)", "h"),
        ("h[0].zero_()", "h"),
        ("torch.relu_(h)", "h"),
        ("nn.init.zeros_(layer.bias)", "bias"),
        ("zeros_(w)", "w"),
        ("h = h + 1", ""),
        ("f(x)", ""),
        ("__import__('x')", ""),
        ("(a + b).mul_(2)", ""),
    ],
)
def test_what_a_statement_writes_in_place(source, name):
    assert name == short_name(written(parse(source)))


@pytest.mark.parametrize(
    ("source", "position", "name"),
    [
        ("h = f(x)", 0, "h"),
        ("self.h = f(x)", 0, "h"),
        ("h: Tensor = f(x)", 0, "h"),
        ("h += f(x)", 0, "h"),
        ("out, h = rnn(x, h)", 0, "h"),
        ("out, (h, c) = lstm(x, (h, c))", 1, "h"),
        ("out, (h, c) = lstm(x, (h, c))", 2, "c"),
        ("out, h = rnn(x)", 0, ""),
        ("a, b = x.chunk(2)", 1, "b"),
        ("d['k'] = f(x)", 0, ""),
        ("h: Tensor", 0, ""),
        ("return f(x)", 0, ""),
    ],
)
def test_what_a_statement_gives_its_result(source, position, name):
    assert name == short_name(assigned(parse(source), position))


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("loss.backward()", "loss"),
        ("self.loss.backward(retain_graph=True)", "loss"),
        ("(a + b).backward()", ""),
        ("step()", ""),
    ],
)
def test_what_a_method_is_called_on(source, name):
    assert name == short_name(receiver(parse(source), "backward"))


def test_the_innermost_statement_of_several_lines_is_found():
    def function(x):
        if x:
            return [
                x,
                x / 0,
            ]
        return x

    code = function.__code__
    division = next(n for n, span in enumerate(code.co_positions()) if span[0] == code.co_firstlineno + 4)

    assert "return [x, x / 0]" == ast.unparse(statement_at(Site(code, 2 * division)))


def test_a_position_without_source_has_no_statement():
    code = compile("x = 1", "<generated>", "exec")

    assert statement_at(Site(code, 0)) is None


@dataclass(slots=True)
class Slotted:
    tensor: torch.Tensor
    later: int = 0


class Loud:
    def __init__(self):
        self.quiet = 1

    @property
    def loud(self):
        raise AssertionError

    def __getattribute__(self, name):
        raise AssertionError


def test_values_are_looked_up_without_running_code():
    names = {"s": Slotted(torch.ones(1)), "loud": Loud(), "d": {"k": [1, 2]}, "layer": nn.Linear(1, 1)}

    def value(source):
        return value_of(ast.parse(source, mode="eval").body, names)

    assert value("s.tensor") is names["s"].tensor
    assert value("layer.weight") is names["layer"].weight
    assert (1, None, 2) == (value("loud.quiet"), value("loud.loud"), value("d['k'][1]"))
    assert [None] * 4 == [value(source) for source in ("d['k'][7]", "missing", "f()", "d['x'].y")]


def test_an_unfilled_slot_is_no_attribute():
    thing = Slotted.__new__(Slotted)

    assert attributes(thing) == {}
