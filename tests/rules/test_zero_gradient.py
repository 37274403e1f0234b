"""Zeros at every recorded step are found, and where they begin; zeros for a while, for a reason or in rows are not."""

import pytest

from tests.rules.builders import check, line, optimizer
from tests.rules.num_builders import NONE, OG, OUT, G, U, W, activation, layer, mixed, run
from whygrad.model import Severity

SLUG = "zero-gradient"
NET = (layer("0"), activation("1", "Tanh"), layer("2"), layer("3"))


def found(layers, sizes, **fields):
    return check(SLUG, run(layers, sizes, **fields))


def test_gradients_that_are_not_zero_are_silent():
    assert found(NET, {}) == []


def test_zeros_before_an_output_whose_gradient_is_not_zero_are_one_finding_where_the_last_layer_is_used():
    zero = dict.fromkeys([(G, "0.weight"), (G, "2.weight"), (OG, "0"), (OG, "1"), (OG, "2")], 0.0)
    (finding,) = found(NET, zero)

    assert finding.severity is Severity.ERROR
    assert finding.tensors == ("0.weight", "2.weight")
    assert finding.place == line(32)
    assert finding.message == (
        "the gradient of `0.weight` (+1) is exactly zero at all 12 recorded steps: "
        "no gradient passes between the outputs of `2` and `3`"
    )
    assert finding.evidence["zero_steps"] == 12


def test_zeros_from_the_loss_on_are_one_finding_at_the_line_of_backward():
    (finding,) = found(NET, {(G, "*"): 0.0, (OG, "*"): 0.0})

    assert finding.tensors == ("0.weight", "2.weight", "3.weight")
    assert finding.place == line(50)
    assert "the loss does not change with what the model returns" in finding.message


def test_a_zero_weight_with_a_zero_gradient_is_a_product_of_zeros_at_the_line_that_makes_it():
    sizes = {(role, f"{name}.weight"): 0.0 for name in ("0", "2") for role in (G, W)}
    (finding,) = found(NET, {**sizes, (OG, "0"): 0.0, (OG, "1"): 0.0})

    assert finding.place in {line(10), line(12)}
    assert "`0.weight` (+1) are zero too, and a product of zeros stays zero" in finding.message


def test_a_layer_whose_output_gets_a_gradient_was_given_zeros():
    (finding,) = found(NET, {(G, "0.weight"): 0.0})

    assert finding.tensors == ("0.weight",)
    assert "what enters it is all zeros" in finding.message


def test_a_parameter_of_another_kind_whose_module_gets_a_gradient_has_no_slope_or_no_use():
    layers = (layer("0"), layer("gate", "Gate", ("cutoff",)), layer("2"))
    (finding,) = found(layers, {(G, "gate.cutoff"): 0.0})

    assert finding.place == line(31)
    assert "no slope or no use" in finding.message


def test_two_stretches_are_two_findings():
    sizes = {(G, "0.weight"): 0.0, (G, "3.weight"): 0.0}

    assert [finding.tensors for finding in found(NET, sizes)] == [("0.weight",), ("3.weight",)]


@pytest.mark.parametrize("alive", [0, 5, 11])
def test_one_step_that_is_not_zero_is_enough_to_be_silent(alive):
    assert found(NET, {(G, "0.weight"): lambda step: float(step == alive)}) == []


def test_zeros_in_most_elements_are_silent():
    assert found(NET, {(G, "0.weight"): mixed(zeros=15)}) == []


def test_fewer_than_five_recorded_steps_are_silent():
    assert found(NET, {(G, "*"): 0.0, (OG, "*"): 0.0}, steps=4) == []


def test_what_nothing_is_to_train_is_silent():
    idle = optimizer(steps=0)
    frozen = (layer("0", requires_grad=False), layer("1", stale=True))

    assert found(NET, {(G, "*"): 0.0}, optimizers=(idle,)) == []
    assert found(frozen, {(G, "*"): 0.0}) == []


def test_a_loop_without_optimizer_counts():
    manual = tuple(layer(name, optimizers=()) for name in ("0", "1"))
    (finding,) = found(manual, {(G, "*"): 0.0, (OG, "*"): 0.0}, optimizers=())

    assert finding.tensors == ("0.weight", "1.weight")


def test_without_observed_outputs_the_line_that_uses_it_is_the_place():
    (finding,) = found(NET, {(G, "0.weight"): 0.0, (OG, "*"): NONE, (OUT, "*"): NONE})

    assert finding.place == line(30)


# -- rounding ----------------------------------------------------------------------------------------------------------


def cancelled(ratio, **more):
    before = {(OG, name): ratio for name in ("0", "1", "2")}
    return found(NET, {**before, (G, "0.weight"): 1e-8, (G, "2.weight"): 1e-8, **more})


def test_a_gradient_that_cancels_to_rounding_between_two_outputs_is_zero():
    (finding,) = cancelled(1e-6)

    assert finding.tensors == ("0.weight", "2.weight")
    assert finding.place == line(32)
    assert finding.evidence["ratio"] == pytest.approx(1e-6)


def test_a_gradient_that_is_small_for_another_reason_is_not():
    assert cancelled(1e-3) == []


def test_one_step_that_gets_through_is_enough():
    assert cancelled(1e-6) != []
    assert cancelled(1e-6) != []
    assert cancelled(lambda step: 1.0 if step == 6 else 1e-6) == []


def test_large_values_may_be_saturated():
    assert found(NET, {(OG, "0"): 1e-6, (OG, "1"): 1e-6, (OG, "2"): 1e-6, (OUT, "2"): 50.0}) == []


# -- infos -------------------------------------------------------------------------------------------------------------


def lookups(shape_rows=1, **fields):
    """Return a run whose table of four rows has a zero row that a sixth of the samples look up."""
    layers = (layer("table", "Embedding", silent_rows=shape_rows, **fields), layer("out"))
    zero_row = mixed(zeros=4, count=16)
    return layers, {(W, "table.weight"): zero_row, (OUT, "table"): mixed(zeros=4, count=24)}


def test_a_padding_row_that_single_lookups_hit_is_an_info():
    (finding,) = found(*lookups())

    assert finding.severity is Severity.INFO
    assert finding.tensors == ("table.weight",)
    assert finding.place == line(10)
    assert "16.7% of all samples" in finding.message


def test_a_padding_row_of_sequences_is_silent():
    layers, sizes = lookups()
    evidence = run(layers, sizes)
    (first, *others) = evidence.outputs
    longer = type(first)(first.id, first.name, first.module, first.order, (4, 7, 4), "float32", 12, gradient_calls=12)

    assert check(SLUG, run(layers, sizes, outputs=(longer, *others))) == []


def test_a_table_with_many_unused_rows_is_silent():
    layers, sizes = lookups(shape_rows=3)

    assert found(layers, {**sizes, (W, "table.weight"): mixed(zeros=12)}) == []
    assert found(layers, {**sizes, (W, "table.weight"): mixed(zeros=0), (U, "*"): 0.0}) == []
