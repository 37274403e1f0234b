"""An optimizer that never steps is a fault if what it holds gets gradients and stays as it was."""

import pytest

from tests.rules import loop_builders
from tests.rules.builders import (
    check,
    event,
    evidence,
    info,
    line,
    never_stepped,
    optimizer,
    parameter,
    raised,
    weights,
)
from whygrad.model import Severity

SLUG = "no-step"
OPTIMIZER = never_stepped()
WEIGHT = parameter("weight", 0, steps=0, gradient_steps=0)


def backward(number):
    return event("backward", place=line(number))


def run(*parameters, optimizers=(OPTIMIZER,), **fields):
    return check(SLUG, evidence(parameters or (WEIGHT,), optimizers, **fields))


def test_an_optimizer_that_never_steps_is_an_error_at_the_only_line_that_calls_backward():
    (finding,) = run(events=(backward(25),))

    assert finding.severity is Severity.ERROR
    assert finding.tensors == ("weight",)
    assert finding.place == line(25)
    assert finding.also == (line(20),)
    assert finding.fix == "Call `optimizer.step()` after backward"
    assert finding.evidence["backward_passes"] == 10


def test_with_several_backward_lines_the_place_is_where_the_optimizer_was_made():
    (finding,) = run(events=(backward(25), backward(28)))

    assert finding.place == line(20)
    assert finding.also == ()


def test_a_step_that_stands_in_the_text_and_was_never_reached_is_the_place():
    calls = (
        event("unreached_step_call", place=line(27), subject="optimizer"),
        event("unreached_step_call", place=line(28), subject="another"),
    )

    (finding,) = run(events=(backward(25), *calls))

    assert finding.place == line(27)
    assert finding.also == (line(25), line(20))
    assert "reachable" in finding.fix


def test_each_optimizer_has_its_own_finding():
    two = (never_stepped(0, name="one"), never_stepped(1, name="other"))

    found = run(WEIGHT, parameter("b", 1, optimizers=(1,)), optimizers=two)

    assert [finding.tensors for finding in found] == [("weight",), ("b",)]


def test_beside_others_that_step_an_optimizer_in_use_is_an_error_and_one_that_waits_a_warning():
    critic = parameter("critic.weight", 1, optimizers=(1,), steps=0)

    (in_use,) = run(critic, optimizers=(optimizer(0), never_stepped(1, zero_grads=10)))
    (waiting,) = run(critic, optimizers=(optimizer(0), never_stepped(1, zero_grads=0)))

    assert (in_use.severity, waiting.severity) == (Severity.ERROR, Severity.WARNING)


@pytest.mark.parametrize("fields", [{"steps": 1}, {"skipped": 1}])
def test_an_optimizer_that_stepped_or_tried_to_is_silent(fields):
    assert run(optimizers=(never_stepped(**fields),)) == []


@pytest.mark.parametrize(
    "fields",
    [
        {"reached": 2},  # too early to tell
        {"requires_grad": False},
        {"optimizers": (0, 1)},  # the optimizer was replaced by another
        {"changed_outside": 5},  # updated by hand
    ],
)
def test_near_misses_are_silent(fields):
    assert run(parameter("weight", 0, **fields), optimizers=(never_stepped(0), optimizer(1))) == []


def test_an_update_by_hand_through_data_is_silent():
    assert run(matrices=weights([0.5, 0.4, 0.3])) == []


def test_a_program_that_raised_is_not_judged_and_one_that_a_person_stopped_is():
    assert run(info=info(raised=raised("boom"))) == []
    assert len(run(info=info(raised=raised("", "KeyboardInterrupt")))) == 1


def test_only_what_was_reached_is_named():
    (finding,) = run(WEIGHT, parameter("unused", 1, reached=0))

    assert finding.tensors == ("weight",)


def test_where_the_scheduler_steps_instead_that_line_is_the_place():
    scheduled = never_stepped(scheduler="StepLR", scheduler_steps=10, scheduler_stepped_at=line(28))

    (finding,) = run(optimizers=(scheduled,), events=(backward(25),))

    assert finding.place == line(28)
    assert finding.fix == "Call `optimizer.step()` after backward, and then that of `StepLR`"


def guarded(*lost):
    """Return rounds of a guard that lets a step happen after so many passes were cleared."""
    usual = [loop_builders.clear(10), loop_builders.backward(11)]
    return loop_builders.loop(*((1, [*(usual * passes), *usual, loop_builders.step(27)]) for passes in lost))


def test_a_guard_that_lets_few_steps_pass_is_an_error_at_the_step():
    (finding,) = check(SLUG, guarded(2, 9, 20))

    assert finding.severity is Severity.ERROR
    assert finding.place == line(30)
    assert finding.message.startswith("`optimizer` made only 10 steps: at least 31 of 34 backward passes")


@pytest.mark.parametrize("lost", [(1, 0, 2, 0), (7, 7, 7), (0, 0, 0, 0)])
def test_few_lost_passes_or_the_same_number_each_time_are_no_guard(lost):
    assert check(SLUG, guarded(*lost)) == []
