"""A frozen parameter is a fault only if an optimizer was to train it and nothing else is left to learn."""

import pytest

from tests.rules.builders import check, evidence, info, line, never_stepped, optimizer, parameter, raised
from tests.rules.path_builders import cut, found, lost
from whygrad.model import CutKind, Severity

SLUG = "frozen-parameter"
NO_GRADIENT = "does-not-require-grad"
EMPTY = raised("optimizer got an empty parameter list", "ValueError", "empty-parameter-list")


def frozen(name, id, **fields):
    stopped = {"requires_grad": False, "frozen_at": line(8), "reached": 0, "gradient_steps": 0, "frozen_steps": 10}
    return parameter(name, id, **{**stopped, **fields})


def run(*parameters, optimizers=None, reason=None, **fields):
    error = None if reason is None else raised("boom", reason=reason)
    given = optimizers or ((optimizer() if reason is None else never_stepped()),)
    return check(SLUG, evidence(parameters, given, info=info(raised=error), **fields))


def test_an_optimizer_of_which_everything_is_frozen_is_an_error_at_the_line_that_froze_it():
    (finding,) = run(frozen("fc.weight", 0), frozen("fc.bias", 1))

    assert finding.severity is Severity.ERROR
    assert finding.tensors == ("fc.weight", "fc.bias")
    assert finding.place == line(8)
    assert finding.message.startswith("`fc.weight` (+1) have requires_grad=False in 10 steps")
    assert finding.evidence["frozen_steps"] == 10


def test_a_parameter_that_was_made_frozen_is_placed_where_it_was_made():
    (finding,) = run(frozen("scale", 0, frozen_at=None, made_at=line(4)))

    assert finding.place == line(4)


def test_a_backward_that_raised_for_want_of_a_gradient_is_explained_without_a_single_step():
    (finding,) = run(frozen("fc.weight", 0, steps=0, frozen_steps=0), reason=NO_GRADIENT)

    assert finding.severity is Severity.ERROR
    assert finding.also == (line(25),)
    assert "backward had nothing to compute" in finding.message


def test_frozen_parameters_that_no_optimizer_holds_are_left_out_of_the_explanation():
    (finding,) = run(
        frozen("body.weight", 0, optimizers=()), frozen("fc.weight", 1, steps=0, frozen_steps=0), reason=NO_GRADIENT
    )

    assert finding.tensors == ("fc.weight",)


def test_a_loss_that_is_cut_off_is_not_explained_by_what_is_frozen_beside_a_live_head():
    body = frozen("body.weight", 0, steps=0, frozen_steps=0)
    head = parameter("head.weight", 1, steps=0, reached=0, gradient_steps=0)

    assert run(body, head, reason=NO_GRADIENT) == []


@pytest.mark.parametrize(("uses", "count"), [(3, 1), (None, 0)])
def test_live_parameters_that_forward_does_not_use_excuse_nothing_if_uses_were_seen(uses, count):
    body = frozen("body.weight", 0, steps=0, frozen_steps=0, uses=uses)
    unused = parameter("spare.weight", 1, steps=0, reached=0, gradient_steps=0, uses=None)

    assert len(run(body, unused, reason=NO_GRADIENT)) == count


def test_another_exception_is_not_explained():
    assert run(frozen("fc.weight", 0, steps=0, frozen_steps=0), reason="") == []


def test_a_filter_that_leaves_the_optimizer_nothing_is_explained_by_a_model_frozen_as_a_whole():
    all_frozen = [frozen(name, number, optimizers=(), steps=0, frozen_steps=0) for number, name in enumerate("ab")]

    (finding,) = check(SLUG, evidence(all_frozen, info=info(raised=EMPTY)))

    assert finding.tensors == ("a", "b")
    assert "nothing was left for the optimizer" in finding.message


def test_an_empty_optimizer_is_not_explained_by_a_model_that_is_frozen_in_part():
    mixed = [frozen("a", 0, optimizers=(), steps=0), parameter("b", 1, optimizers=())]

    assert check(SLUG, evidence(mixed, info=info(raised=EMPTY))) == []


def test_a_frozen_backbone_in_an_optimizer_that_trains_the_head_is_an_info():
    (finding,) = run(frozen("body.weight", 0), parameter("head.weight", 1))

    assert finding.severity is Severity.INFO
    assert finding.tensors == ("body.weight",)


def test_what_is_frozen_while_forward_runs_and_not_at_the_end_is_an_error():
    dozing = lost("body.weight", 1, uses=3)

    (finding,) = found(SLUG, [dozing], [cut(1, CutKind.FROZEN, "requires_grad")])

    assert finding.severity is Severity.ERROR
    assert finding.place == line(40)
    assert finding.message.endswith("requires_grad was switched off at train.py:40 while forward used it")


def test_lines_that_froze_are_told_apart():
    findings = run(frozen("a", 0, frozen_at=line(8)), frozen("b", 1, frozen_at=line(9)))

    assert [finding.tensors for finding in findings] == [("a",), ("b",)]


@pytest.mark.parametrize(
    "fields",
    [
        {"optimizers": ()},  # a frozen backbone that no optimizer holds
        {"frozen_steps": 9},  # unfrozen in the course of the run
        {"steps": 2, "frozen_steps": 2},  # too early to tell
        {"requires_grad": True, "frozen_steps": 0},
    ],
)
def test_near_misses_are_silent(fields):
    assert run(frozen("body.weight", 0, **fields), parameter("head.weight", 1)) == []


def test_a_discriminator_frozen_between_its_own_steps_is_silent():
    critic = parameter("critic.weight", 0, optimizers=(1,), requires_grad=False, frozen_steps=0)

    assert run(critic, parameter("generator.weight", 1), optimizers=(optimizer(0), optimizer(1))) == []
