"""A loop without backward is reported for each optimizer that waits for gradients."""

import pytest

from tests.rules.builders import (
    check,
    evidence,
    info,
    line,
    module,
    never_stepped,
    optimizer,
    parameter,
    raised,
    untouched,
    weights,
)
from whygrad.model import Severity

SLUG = "no-backward"
OPTIMIZER = optimizer()


def run(optimizers=(OPTIMIZER,), parameters=None, modules=(), matrices=None, **fields):
    given = [untouched("weight", 0)] if parameters is None else parameters
    recorded = {} if matrices is None else {"matrices": matrices}
    return check(
        SLUG, evidence(given, optimizers, info=info(**{"backwards": 0, **fields}), modules=modules, **recorded)
    )


def test_steps_without_backward_are_an_error_at_the_line_that_steps():
    (finding,) = run()

    assert finding.severity is Severity.ERROR
    assert finding.tensors == ("weight",)
    assert finding.place == line(30)
    assert finding.also == (line(20),)
    assert finding.message.startswith("`optimizer` stepped 10 times, and backward was never called")


def test_each_optimizer_has_its_own_finding():
    two = (optimizer(0, name="one"), optimizer(1, name="other"))

    found = run(two, [untouched("a", 0, optimizers=(0,)), untouched("b", 1, optimizers=(1,))])

    assert [finding.tensors for finding in found] == [("a",), ("b",)]


@pytest.mark.parametrize("fields", [{"backwards": 1}, {"grad_calls": 1}, {"raised": raised("boom")}])
def test_gradients_from_anywhere_and_crashes_are_silent(fields):
    assert run(**fields) == []


def test_gradients_that_are_written_by_hand_are_silent():
    assert run(parameters=[parameter("weight", 0, gradient_steps=10)]) == []


def test_a_run_that_a_person_stopped_is_judged():
    assert len(run(raised=raised("", "KeyboardInterrupt"))) == 1


def test_two_steps_are_too_few_to_tell():
    assert run((optimizer(steps=2),)) == []


def test_an_optimizer_that_moves_weights_without_gradients_is_silent():
    assert run(matrices=weights([0.5, 0.6])) == []
    assert len(run(matrices=weights([0.5, 0.5]))) == 1


def test_a_loop_that_clears_gradients_and_neither_computes_nor_uses_them_is_an_error():
    (finding,) = run((never_stepped(),), modules=(module("", 0),))

    assert finding.place == line(20)
    assert finding.also == ()
    assert "never stepped" in finding.message


@pytest.mark.parametrize(
    ("fields", "training", "forwards"),
    [
        ({"zero_grads": 0}, True, 10),  # an evaluation that makes an optimizer to load a checkpoint
        ({}, False, 10),
        ({}, True, 2),
    ],
)
def test_a_loop_that_only_looks_is_silent(fields, training, forwards):
    assert run((never_stepped(**fields),), modules=(module("", 0, training=training),), forwards=forwards) == []
