"""Squashing functions that are flat where their values are."""

from tests.rules.builders import check, line
from tests.rules.num_builders import OG, OUT, activation, layer, run
from whygrad.model import Activation, Severity

NET = (layer("0"), activation("1", "Tanh"), layer("2"), activation("3", "Sigmoid"))
HIDDEN, LAST = 1, 3  # ids of outputs


def squash(output, slopes, steps=None):
    steps = range(len(slopes)) if steps is None else steps
    return Activation(0, output, "sigmoid", line(5), tuple(steps), tuple(slopes), tuple(slopes))


def found(activation, sizes=None, **fields):
    return check("saturated-activation", run(NET, sizes, activations=(activation,), **fields))


def test_flat_from_the_start_while_the_loss_stands_still_is_a_warning_for_what_lies_before():
    (finding,) = found(squash(HIDDEN, [0.01] * 12))

    assert finding.severity is Severity.WARNING
    assert finding.tensors == ("0.weight",)
    assert finding.place == line(5)
    assert "`1` passes on 1% of its steepest slope from the start" in finding.message


def test_a_loss_that_falls_is_silent():
    assert found(squash(HIDDEN, [0.01] * 12), losses=[1.0 - 0.05 * step for step in range(12)]) == []


def test_a_hidden_function_that_became_flat_later_is_silent():
    assert found(squash(HIDDEN, [0.5] * 4 + [0.01] * 8)) == []


def test_the_last_function_that_became_flat_is_reported_where_nothing_comes_through():
    (finding,) = found(squash(LAST, [0.5] * 4 + [0.01] * 8), {(OG, "2"): 1e-3})

    assert finding.tensors == ("0.weight", "2.weight")
    assert "in the second half" in finding.message


def test_the_last_function_may_be_flat_where_the_loss_undoes_it():
    assert found(squash(LAST, [0.5] * 4 + [0.01] * 8), {(OG, "2"): 0.3, (OUT, "2"): 6.0}) == []


def test_a_slope_that_is_small_now_and_then_is_silent():
    assert found(squash(HIDDEN, [0.01, 0.5] * 6)) == []


def test_few_looks_are_silent():
    assert found(squash(HIDDEN, [0.01] * 5)) == []
