"""Biases that a later operation takes out again: never more than an info."""

from tests.rules.builders import check, line
from tests.rules.num_builders import G, layer, run
from whygrad.model import Severity

BIASED = (layer("0", attributes=("weight", "bias")), layer("1", "BatchNorm1d"), layer("2"))


def found(layers, sizes):
    return check("shift-invariant-parameter", run(layers, sizes))


def test_a_bias_that_a_normalisation_takes_out_again_is_an_info_at_the_line_that_makes_it():
    (finding,) = found(BIASED, {(G, "0.bias"): 1e-7})

    assert finding.severity is Severity.INFO
    assert finding.tensors == ("0.bias",)
    assert finding.place == line(10)


def test_a_bias_whose_gradient_is_exactly_zero_is_no_more_than_that():
    (finding,) = found(BIASED, {(G, "0.bias"): 0.0})

    assert finding.severity is Severity.INFO


def test_a_bias_that_is_small_because_the_inputs_are_large_is_silent():
    assert found(BIASED, {(G, "0.bias"): 1.0, (G, "0.weight"): 1e6}) == []


def test_a_bias_that_is_small_now_and_then_is_silent():
    assert found(BIASED, {(G, "0.bias"): lambda step: 1e-2 if step == 7 else 1e-7}) == []


def test_zero_gradient_leaves_such_a_bias_alone():
    assert check("zero-gradient", run(BIASED, {(G, "0.bias"): 0.0})) == []
