"""An optimizer that was left with the old parameters of a model is reported."""

from dataclasses import replace

import pytest

from tests.rules.builders import check, evidence, line, never_stepped, optimizer, outsider, parameter, untouched
from whygrad.model import Severity

SLUG = "stale-optimizer"
OLD = parameter("inp.weight", 0, stale=True)
NEW = outsider("inp.weight", 1, made_at=line(36))


def run(*parameters, optimizers=None):
    return check(SLUG, evidence(parameters, optimizers or (optimizer(),)))


def test_replaced_parameters_are_an_error_at_the_line_of_the_optimizer():
    (finding,) = run(OLD, NEW, outsider("out.weight", 2, made_at=line(38)))

    assert finding.severity is Severity.ERROR
    assert finding.tensors == ("inp.weight", "out.weight")
    assert finding.place == line(20)
    assert finding.also == (line(36), line(38))
    assert finding.message == (
        "`optimizer` holds 1 parameter that the model has replaced; `inp.weight` (+1) got a gradient in 10 of 10 "
        "backward passes, and no optimizer holds them"
    )
    assert finding.evidence["stale_parameters"] == 1


@pytest.mark.parametrize(
    "new",
    [
        parameter("inp.weight", 1, optimizers=(1,)),  # another optimizer took over
        replace(NEW, root="other"),
        replace(NEW, reached=2, gradient_steps=2),
        replace(NEW, requires_grad=False),
        replace(NEW, registered=False),
        replace(NEW, changed_outside=5),
    ],
)
def test_surgery_with_a_new_optimizer_and_near_misses_are_silent(new):
    assert run(OLD, new, optimizers=(optimizer(), optimizer(1))) == []


def test_an_optimizer_that_never_stepped_is_silent():
    assert run(OLD, NEW, optimizers=(never_stepped(),)) == []


def test_nothing_is_stale_in_a_model_that_was_left_as_it_was():
    assert run(parameter("inp.weight", 0), outsider("extra.weight", 1)) == []


# -- a copy is trained -------------------------------------------------------------------------------------------------


def original(name, id, **fields):
    return untouched(name, id, root="template", **fields)


def twin(name, id, **fields):
    return outsider(name, id, root="module", **fields)


def test_an_optimizer_of_the_original_while_its_copy_is_used_is_an_error_about_both():
    given = [
        original("a.0", 0, module=""),
        original("a.2", 1, module=""),
        twin("b.0", 2, module=""),
        twin("b.2", 3, module=""),
    ]

    (finding,) = run(*given)

    assert finding.tensors == ("b.0", "b.2", "a.0", "a.2")
    assert "holds 2 parameters that get no gradient" in finding.message


@pytest.mark.parametrize(
    "changed",
    [
        {"shape": (3, 3)},
        {"module": "other"},
        {"attribute": "scale"},
        {"optimizers": (0,)},
        {"reached": 0, "gradient_steps": 0},
    ],
)
def test_another_model_is_no_copy(changed):
    assert run(original("0.weight", 0), replace(twin("0.weight", 1), **changed)) == []


def test_an_original_that_learns_and_a_copy_of_a_part_are_silent():
    assert run(original("0.weight", 0, reached=4), twin("0.weight", 1)) == []
    assert run(original("0.weight", 0), original("2.weight", 1), twin("0.weight", 2)) == []
