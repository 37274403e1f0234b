"""A model that stays as it is while its copies are trained is reported, unless it is a teacher or a baseline."""

from dataclasses import replace

import pytest

from tests.rules.builders import check, evidence, info, line, optimizer, outsider, parameter
from whygrad.model import Severity

SLUG = "trained-copy-discarded"
ORIGINAL = outsider("weight", 0, evaluations=4, gradient_steps=0, reached=0)
COPIES = tuple(
    parameter("weight", number, optimizers=(number - 1,), copy_of=0, copied_at=line(35), copied_step=0, root="local")
    for number in (1, 2, 3)
)
OPTIMIZERS = tuple(optimizer(number) for number in range(3))


def run(*parameters, **fields):
    return check(SLUG, evidence(parameters, OPTIMIZERS, **fields))


def test_a_model_that_never_changes_while_copies_are_trained_is_an_error_where_it_is_copied():
    (finding,) = run(ORIGINAL, *COPIES)

    assert finding.severity is Severity.ERROR
    assert finding.tensors == ("weight",)
    assert finding.place == line(35)
    assert "`model` was copied 3 times and the copies trained, but `weight` of it never changed" in finding.message
    assert finding.evidence["steps_of_copies"] == 30


@pytest.mark.parametrize(
    "fields",
    [
        {"evaluations": 0},  # a template
        {"evaluations": 9},  # a teacher, called at each of 10 steps
        {"changed_outside": 4},  # the average of the copies is loaded
        {"optimizers": (0,)},  # it is trained itself
        {"requires_grad": False},
    ],
)
def test_a_model_that_is_a_template_a_teacher_or_learns_is_silent(fields):
    assert run(replace(ORIGINAL, **fields), *COPIES) == []


def test_copies_that_are_evaluated_or_not_trained_are_silent():
    assert run(ORIGINAL, *(replace(copy, evaluations=1) for copy in COPIES)) == []
    assert run(ORIGINAL, *(replace(copy, gradient_steps=0) for copy in COPIES)) == []
    assert run(ORIGINAL, *(replace(copy, copy_of=None) for copy in COPIES)) == []


def test_a_model_of_which_only_a_small_part_was_copied_is_silent():
    others = [outsider(name, number, evaluations=4) for number, name in enumerate("abc", 10)]

    assert run(ORIGINAL, *others, *COPIES) == []


AVERAGE = outsider("average.weight", 1, root="average", copy_of=0, copied_at=line(12), copied_step=0, evaluations=3)


def test_a_copy_from_before_the_first_step_that_is_evaluated_in_place_of_its_original_is_a_warning():
    (finding,) = run(parameter("weight", 0), AVERAGE)

    assert finding.severity is Severity.WARNING
    assert (finding.tensors, finding.place) == (("average.weight",), line(12))
    assert "`average` is a copy of `model` from before the first step" in finding.message


@pytest.mark.parametrize(
    ("original", "copy"),
    [
        ({"evaluations": 3}, {}),  # both are compared
        ({}, {"copied_step": 10}),  # the result, kept
        ({}, {"changed_outside": 5}),  # an average that is updated
        ({}, {"evaluations": 10}),  # the model of before, asked at each step
        ({"gradient_steps": 0}, {}),
    ],
)
def test_other_copies_are_silent(original, copy):
    assert run(parameter("weight", 0, **original), replace(AVERAGE, **copy), info=info(steps=10)) == []
