import pytest

from tests.rules.builders import check
from tests.rules.loss_builders import ACTIVATION_LINE, call, run
from whygrad.evidence import MemoryMatrices
from whygrad.model import Role, Severity, Statistics

SLUG = "activation-on-output"


def behind(activation, **fields):
    return {"activation": activation, "activation_at": ACTIVATION_LINE, "low": 0.0, "high": 0.9, **fields}


@pytest.mark.parametrize(
    ("activation", "targets"),
    [
        ("relu", {"target_negative": 0.4}),
        ("clamp(min=0)", {"target_negative": 0.4}),
        ("sigmoid", {"target_negative": 0.1, "target_above_one": 0.3}),
        ("tanh", {"target_above_one": 0.2, "target_below_minus_one": 0.2}),
    ],
)
@pytest.mark.parametrize("function", ["mse_loss", "smooth_l1_loss", "sub"])
def test_targets_that_the_activation_cannot_return_are_found(function, activation, targets):
    (finding,) = check(SLUG, run(call(function, **behind(activation), **targets)))

    assert (finding.place, finding.severity) == (ACTIVATION_LINE, Severity.WARNING)
    assert "40% of the targets" in finding.message


def test_it_is_an_error_where_most_targets_are_out_of_reach():
    (finding,) = check(SLUG, run(call("mse_loss", **behind("relu"), target_negative=0.6)))

    assert finding.severity is Severity.ERROR


@pytest.mark.parametrize("activation", ["relu", "tanh", "sigmoid"])
def test_logits_in_too_narrow_a_range_are_found(activation):
    assert len(check(SLUG, run(call("cross_entropy", **behind(activation))))) == 1


def test_a_relu_in_front_of_a_sigmoid_is_found():
    inner = {"inner_activation": "relu", "inner_activation_at": ACTIVATION_LINE}

    assert len(check(SLUG, run(call("binary_cross_entropy", **behind("sigmoid"), **inner)))) == 1


def matrices(*sizes):
    steps = range(len(sizes))
    return MemoryMatrices({(s, Role.GRADIENT): {0: Statistics(count=4, max_abs=sizes[s])} for s in steps})


def test_a_relu_that_has_died_is_found_though_no_target_is_negative():
    relu = call("mse_loss", **behind("relu"))
    dead, alive = matrices(*[0.1] * 8, *[0.0] * 8), matrices(*[0.1] * 15, 0.0)

    assert [finding.severity for finding in check(SLUG, run(relu, matrices=dead))] == [Severity.ERROR]
    assert check(SLUG, run(relu, matrices=alive)) == []


@pytest.mark.parametrize(
    "fine",
    [
        call("mse_loss", target_negative=0.5),
        call("mse_loss", **behind("relu"), target_negative=0.04),
        call("mse_loss", **behind("relu"), target_negative=0.5, target_from_model=True),
        call("mse_loss", **behind("tanh"), target_negative=0.5),
        call("mse_loss", **behind("sigmoid")),
        call("mse_loss", **behind("relu"), target_negative=0.5, calls=2),
        call("cross_entropy"),
        call("binary_cross_entropy", **behind("sigmoid")),
        call("binary_cross_entropy_with_logits", **behind("sigmoid")),  # another rule's
    ],
)
def test_an_activation_that_can_return_the_targets_is_left_alone(fine):
    assert check(SLUG, run(fine)) == []
