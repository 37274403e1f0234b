"""Layers that are made anew for each pass are reported at the line that makes them; fresh models are not."""

from dataclasses import replace

import pytest

from tests.rules.builders import check, evidence, info, line, optimizer, outsider, parameter
from whygrad.model import Severity

SLUG = "recreated-each-forward"
OPTIMIZERS = (optimizer(),)
HEAD = parameter("head.weight", 0)


def run(*parameters, optimizers=OPTIMIZERS, **fields):
    return check(SLUG, evidence([HEAD, *parameters], optimizers, **fields))


def passing(id, attribute="weight", **fields):
    made = replace(line(10, code="mix = nn.Linear(8, 8)"), function="forward")
    local = {"registered": False, "held_in": "variable", "attribute": attribute, "root": "", "stale": True}
    return outsider(attribute, id, **{**local, "made_at": made, "used_at": line(11), "reached": 1, **fields})


def replaced(id, **fields):
    made = replace(line(10), function="forward")
    once = {"made_at": made, "reached": 1, "steps": 1, "gradient_steps": 1}
    return outsider("project.weight", id, **{**once, **fields})


def test_a_layer_that_forward_makes_and_drops_is_an_error_at_its_line():
    (finding,) = run(*(passing(n, name) for n, name in enumerate(["weight", "bias"] * 4, 1)))

    assert finding.severity is Severity.ERROR
    assert finding.tensors == ("mix.weight", "mix.bias")
    assert (finding.place.line, finding.also) == (10, (line(11),))
    assert finding.message == (
        "`mix.weight` (+1) are made anew in `forward`, 4 times in this run: what they learn in a step is gone by the "
        "next"
    )


@pytest.mark.parametrize(
    "fields",
    [
        {"registered": True, "held_in": "", "root": "net"},  # of a model, and stepped ten times
        {"optimizers": (1,)},  # an inner loop with an optimizer
        {"reached": 0},
        {"reached": 2},
        {"requires_grad": False},
        {"loaded": True},
        {"made_at": line(10)},  # made outside of any function
        {"made_at": None},
    ],
)
def test_what_is_made_again_and_again_for_another_reason_is_silent(fields):
    assert run(*(passing(number, **fields) for number in range(1, 6))) == []


def test_two_generations_are_too_few_and_a_program_without_steps_is_no_training():
    assert run(passing(1), passing(2)) == []
    assert run(*(passing(number) for number in range(1, 6)), optimizers=()) == []


def test_a_layer_that_forward_puts_on_the_model_in_each_pass_is_an_error():
    (finding,) = run(*(replaced(number) for number in range(1, 10)))

    assert finding.tensors == ("project.weight",)
    assert "made anew in `forward`, 9 times" in finding.message


def test_a_model_that_the_loop_makes_for_each_step_is_an_error():
    made = [replaced(number, made_at=line(5), optimizers=(0,)) for number in range(1, 10)]

    (finding,) = run(*made)

    assert "made anew in the loop, 9 times" in finding.message
    assert "in front of the loop" in finding.fix


@pytest.mark.parametrize("fields", [{"copy_of": 0}, {"loaded": True}, {"gradient_steps": 2, "reached": 2}])
def test_copies_and_models_that_are_trained_are_silent(fields):
    assert run(*(replaced(number, **fields) for number in range(1, 10))) == []


def test_a_layer_that_is_replaced_now_and_then_is_silent():
    assert run(*(replaced(number) for number in range(1, 6)), info=info(backwards=20)) == []
