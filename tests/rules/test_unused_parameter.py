"""A parameter is unused only if everything says so: no operation took it, no graph reached it, it did not change."""

import pytest

from tests.rules.builders import check, evidence, line, optimizer, parameter, untouched, weights
from whygrad.model import Severity

SLUG = "unused-parameter"
LEARNING = parameter("body.weight", 0)


def run(*parameters, **fields):
    return check(SLUG, evidence([LEARNING, *parameters], [optimizer()], **fields))


def test_a_layer_that_forward_never_uses_is_one_warning_at_the_line_that_makes_it():
    (finding,) = run(untouched("head.weight", 1, made_at=line(5)), untouched("head.bias", 2, made_at=line(5)))

    assert finding.severity is Severity.WARNING
    assert finding.tensors == ("head.weight", "head.bias")
    assert finding.place == line(5)
    assert "`head` took part in no operation and got no gradient in 10 steps" in finding.message
    assert finding.evidence["optimizers"] == ["optimizer"]
    assert finding.evidence["elements"] == 32


def test_it_is_an_info_where_no_optimizer_holds_it():
    (finding,) = run(untouched("head.weight", 1, optimizers=()))

    assert finding.severity is Severity.INFO


def test_layers_made_at_one_line_are_one_finding_and_those_at_another_line_another():
    found = run(
        untouched("a.0.weight", 1, made_at=line(5)),
        untouched("b.weight", 2, made_at=line(6)),
        untouched("a.1.weight", 3, made_at=line(5)),
    )

    assert [finding.tensors for finding in found] == [("a.0.weight", "a.1.weight"), ("b.weight",)]


def test_what_an_optimizer_holds_is_told_apart_from_what_none_holds_on_the_same_line():
    found = run(untouched("a.0.weight", 1, optimizers=()), untouched("a.1.weight", 2))

    assert [(f.severity, f.tensors) for f in found] == [
        (Severity.WARNING, ("a.1.weight",)),
        (Severity.INFO, ("a.0.weight",)),
    ]


@pytest.mark.parametrize(
    "fields",
    [
        {"uses": 1},  # used, but the loss does not depend on it: another rule
        {"uses": None},  # no step was traced: nothing is known
        {"reached": 1},  # later than the traced steps
        {"gradient_steps": 1},  # its gradient was written by hand
        {"walked": 2},  # too early to tell
        {"requires_grad": False},
        {"registered": False, "held_in": "list"},
        {"changed_outside": 1},  # an average of the weights, kept in the model
        {"stale": True},  # no module holds it any more
    ],
)
def test_near_misses_are_silent(fields):
    assert run(untouched("head.weight", 1, **fields)) == []


def test_an_average_of_the_weights_that_is_written_through_data_is_silent():
    assert run(untouched("average.weight", 1), matrices=weights([0.5, 0.5], [0.5, 0.6])) == []


def test_a_model_of_which_nothing_is_trained_is_silent():
    assert run(untouched("weight", 1, root="reference"), untouched("bias", 2, root="reference")) == []


def test_without_optimizer_the_backward_passes_are_counted():
    manual = [parameter("body.weight", 0, optimizers=()), untouched("head.weight", 1, optimizers=(), steps=0)]

    (finding,) = check(SLUG, evidence(manual))

    assert finding.severity is Severity.INFO
    assert "in 10 backward passes" in finding.message


@pytest.mark.parametrize(
    ("names", "what"),
    [
        (["head.weight", "head.bias"], "`head`"),
        (["aux.0.weight", "aux.2.weight"], "`aux`"),
        (["scale"], "`scale`"),
        (["body.adapter.weight", "body.adapter.bias"], "`body.adapter`"),
        (["body.a.weight", "body.b.weight"], "`body.a` (+1)"),  # `body` as a whole is used
        (["gain", "shift"], "`gain` (+1)"),
    ],
)
def test_the_fix_names_the_module_that_is_unused_and_no_larger_one(names, what):
    (finding,) = run(*(untouched(name, number, made_at=line(5)) for number, name in enumerate(names, 1)))

    assert finding.fix == f"Use {what} in forward(), or delete it"
