"""A cut is a fault only for what something is to train and no path brings a gradient."""

import pytest

from tests.rules.builders import check, evidence, info, line, module, optimizer, outsider, parameter, weights
from tests.rules.path_builders import cut, found, lost, stopped, zeros
from whygrad.model import CutKind, PathEnd, Severity

SLUG = "detached"


def test_what_an_optimizer_holds_and_no_gradient_reaches_is_an_error_at_the_cut():
    (finding,) = found(SLUG, [lost("gate.weight", 1), lost("gate.bias", 2)], [cut(1), cut(2)])

    assert finding.severity is Severity.ERROR
    assert finding.tensors == ("gate.weight", "gate.bias")
    assert finding.place == line(40)
    assert finding.message == (
        "`gate.weight` (+1) got no gradient in 10 steps: `detach()` takes a tensor out of the graph"
    )
    assert finding.evidence == {
        "steps": 10,
        "gradient_steps": 0,
        "backward_passes": 10,
        "reached": 0,
        "elements": 32,
        "operation": "detach",
        "inferred": False,
    }


@pytest.mark.parametrize(
    "fields",
    [
        {"path": PathEnd.REACHED},  # the traced steps saw another path
        {"path": None},  # no step was traced
        {"path": PathEnd.IGNORED},
        {"path": PathEnd.CLEARED},
        {"path": PathEnd.RESTRICTED},
        {"reached": 1},  # learned in another phase
        {"gradient_steps": 1},
        {"requires_grad": False},
        {"stale": True},
        {"optimizers": ()},  # a target network, a teacher
        {"changed_outside": 4},  # a moving average
    ],
)
def test_a_stop_gradient_on_purpose_is_silent(fields):
    assert found(SLUG, [lost("teacher.weight", 1, **fields)], [cut(1)]) == []


def test_a_moving_average_that_is_written_through_data_is_silent():
    teacher = lost("teacher.weight", 1)

    assert found(SLUG, [teacher], [cut(1)], matrices=weights([0.5, 0.5], [0.5, 0.7])) == []


def test_a_parameter_without_a_cut_is_another_rules_case():
    assert found(SLUG, [lost("gate.weight", 1)]) == []


def test_the_nearest_cut_names_the_rule():
    given = [lost("gate.weight", 1)]
    far, near = cut(1, number=50, distance=4), cut(1, CutKind.NONDIFFERENTIABLE, "argmax", distance=2)

    assert found("nondifferentiable-op", given, [far, near])
    assert found(SLUG, given, [far, near]) == []


def test_lines_of_one_function_are_one_finding_at_the_line_that_most_pass():
    given = [lost("a", 1), lost("b", 2), lost("c", 3)]

    (finding,) = found(SLUG, given, [cut(1, number=41), cut(2, number=42), cut(3, number=42)])

    assert finding.tensors == ("a", "b", "c")
    assert finding.place == line(42)
    assert finding.also == (line(41),)


def test_different_ways_and_functions_are_different_findings():
    given = [lost("a", 1), lost("b", 2), lost("c", 3)]
    elsewhere = cut(3, place=line(40, file="model.py"))

    findings = found(SLUG, given, [cut(1), cut(2, CutKind.DATA, "data"), elsewhere])

    assert [f.tensors for f in findings] == [("a",), ("b",), ("c",)]


def test_without_an_optimizer_a_sibling_that_gets_gradients_shows_that_the_model_trains():
    siblings = [outsider("body.weight", 5)]

    assert len(found(SLUG, [*siblings, lost("gate.weight", 1, optimizers=())], [cut(1)], optimizers=())) == 1


def test_without_an_optimizer_a_model_that_gets_no_gradients_is_silent():
    teacher = lost("layer.weight", 1, optimizers=(), root="teacher")

    assert found(SLUG, [teacher], [cut(1)], optimizers=()) == []


def test_backward_that_raised_shows_that_the_model_was_to_train():
    given = [lost("gate.weight", 1, optimizers=(), root="other", steps=0, walked=0)]

    (finding,) = found(SLUG, given, [cut(1)], optimizers=(), info=stopped("does-not-require-grad"))

    assert finding.message.startswith("`gate.weight` got no gradient: ")


def test_before_the_first_step_backward_passes_are_counted():
    (finding,) = found(SLUG, [lost("gate.weight", 1, steps=0, walked=3)], [cut(1)])

    assert "got no gradient in 3 backward passes" in finding.message


def test_a_part_in_eval_mode_beside_one_that_trains_is_an_info():
    known = parameter("head.bias", 7, order=0)
    (finding,) = found(
        SLUG,
        [known, lost("teacher.weight", 1, order=1)],
        [cut(1)],
        modules=(module("head", 0, order=0), module("teacher", 1, order=1, training=False)),
    )

    assert finding.severity is Severity.INFO


def test_a_program_in_eval_mode_throughout_says_nothing_about_purpose():
    modules = (module("head", 0, order=0, training=False), module("gate", 1, order=1, training=False))
    known = parameter("head.bias", 7, order=0)

    (finding,) = found(SLUG, [known, lost("gate.weight", 1, order=1)], [cut(1)], modules=modules)

    assert finding.severity is Severity.ERROR


def test_a_part_that_alone_was_loaded_is_an_info():
    (finding,) = found(SLUG, [lost("backbone.weight", 1, loaded=True)], [cut(1)])

    assert finding.severity is Severity.INFO


def test_a_checkpoint_of_everything_says_nothing_about_purpose():
    loaded = [parameter("head.weight", 0, loaded=True), lost("gate.weight", 1, loaded=True)]

    (finding,) = check(SLUG, evidence(loaded, [optimizer()], cuts=(cut(1),)))

    assert finding.severity is Severity.ERROR


def test_what_makes_backward_raise_is_an_error_even_if_it_was_loaded():
    given = [lost("backbone.weight", 1, loaded=True)]

    (finding,) = found(SLUG, given, [cut(1)], info=stopped("does-not-require-grad"))

    assert finding.severity is Severity.ERROR


@pytest.mark.parametrize(
    ("slug", "kind", "operation"),
    [
        ("nondifferentiable-op", CutKind.NONDIFFERENTIABLE, "sign"),
        ("custom-backward", CutKind.CUSTOM, "Round"),
    ],
)
def test_a_gradient_that_is_zero_behind_a_flat_operation_is_told_from_none(slug, kind, operation):
    cutoff = parameter("cutoff", 1, path=PathEnd.REACHED)
    flat = cut(1, kind, operation)

    (finding,) = found(slug, [cutoff], [flat], totals=zeros(1))

    assert finding.message.startswith("the gradient of `cutoff` is exactly zero at all 10 recorded steps: ")
    assert found(slug, [cutoff], [flat], totals=zeros(1, zero_steps=9)) == []
    assert found(slug, [cutoff], [flat], totals=zeros(1, steps=2, zero_steps=2)) == []
    assert found(slug, [cutoff], [flat]) == []


def test_zeros_are_not_blamed_on_a_detach_beside_the_path():
    cutoff = parameter("cutoff", 1, path=PathEnd.REACHED)

    assert found(SLUG, [cutoff], [cut(1)], totals=zeros(1)) == []
    detach, sign = cut(1, distance=1), cut(1, CutKind.NONDIFFERENTIABLE, "sign", 50, distance=3)
    (finding,) = found("nondifferentiable-op", [cutoff], [detach, sign], totals=zeros(1))
    assert finding.place == line(50)


def test_places_that_are_not_known_leave_the_finding_without_one():
    (finding,) = found(SLUG, [lost("gate.weight", 1)], [cut(1, place=None)])

    assert finding.place is None
    assert finding.also == ()


def test_a_run_that_was_stopped_by_hand_is_judged_like_any_other():
    given = [lost("gate.weight", 1)]

    assert len(found(SLUG, given, [cut(1)], info=info(ended=False))) == 1
