"""A ReLU that returns only zeros to the end of the run is found, with the step that killed it."""

import pytest

from tests.rules.builders import check, line
from tests.rules.num_builders import NONE, OG, OUT, G, U, W, activation, layer, mixed, run
from whygrad.model import Severity

SLUG = "dead-relu"
NET = (layer("0"), activation("1"), layer("2"), activation("3"), layer("4"))
PLAIN = (layer("0"), layer("2"), layer("4"))  # the ReLU between 2 and 4 is a function


def since(first, before=1.0, after=0.0):
    return lambda step: after if step >= first else before


def dead(first=6, layers=NET, steps=30, **fields):
    """Return the findings of a run in which the second ReLU dies at a step."""
    blocked = [(G, "0.weight"), (G, "2.weight"), (OG, "0"), (OG, "1"), (OG, "2"), (OUT, "3")]
    sizes = {**{key: since(first) for key in blocked}, **fields.pop("sizes", {})}
    return check(SLUG, run(layers, sizes, steps=steps, **fields))


def test_a_model_that_learns_is_silent():
    assert check(SLUG, run(NET, {(OUT, "1"): mixed(zeros=14), (OUT, "3"): mixed(zeros=15)})) == []


def test_a_layer_that_dies_is_an_error_that_names_what_it_stops():
    (finding,) = dead()

    assert finding.severity is Severity.ERROR
    assert finding.tensors == ("0.weight", "2.weight")
    assert finding.message == "`3` returned only zeros since step 6: `0.weight` (+1) get no gradient any more"
    assert finding.evidence["dead_steps"] == 24
    assert finding.place == line(103)


def test_a_large_update_before_the_death_leads_to_the_line_of_the_optimizer():
    (finding,) = dead(sizes={(U, "2.weight"): lambda step: 4.5 if step == 3 else 0.01})

    assert finding.place == line(20)
    assert "after an update of 4.5 times the weight at step 3" in finding.message
    assert "learning rate" in finding.fix
    assert finding.evidence["at_step"] == 3


def test_a_large_update_after_the_death_killed_nothing():
    (finding,) = dead(sizes={(U, "2.weight"): lambda step: 4.5 if step == 9 else 0.01})

    assert finding.place == line(103)


def test_a_layer_that_starts_at_zero_is_dead_from_the_first_step_on():
    (finding,) = dead(0, sizes={(W, "0.weight"): 0.0, (W, "2.weight"): 0.0})

    assert "from the first recorded step on, because its weights start at zero" in finding.message
    assert "random" in finding.fix


def test_what_still_gets_a_gradient_by_another_path_is_not_blamed():
    (finding,) = dead(sizes={(G, "0.weight"): 1.0})

    assert finding.tensors == ("2.weight",)


def test_several_dead_layers_in_a_row_are_one_finding_and_the_first_death_is_the_cause():
    (finding,) = dead(9, sizes={(OUT, "1"): since(4), (G, "0.weight"): since(4), (OG, "0"): since(4)})

    assert finding.message.startswith("`1` (+1) returned only zeros since step 4")
    assert finding.tensors == ("0.weight", "2.weight")


def test_the_step_of_death_is_found_between_two_sampled_ones():
    (finding,) = dead(101, steps=200)

    assert finding.evidence["since_step"] == 101
    assert finding.evidence["dead_steps"] == 99


@pytest.mark.parametrize(
    "sizes",
    [
        {(OUT, "3"): lambda step: float(step == 29)},  # fires again at the end
        {(OUT, "3"): mixed(zeros=15)},
        {(OG, "2"): 1.0},  # what enters the ReLU has another way to the loss
        {(G, "0.weight"): 1.0, (G, "2.weight"): 1.0},  # nothing is stopped
    ],
)
def test_near_misses_are_silent(sizes):
    assert dead(sizes=sizes) == []


def test_zeros_for_a_few_last_steps_are_silent():
    assert dead(24) == []
    assert dead(20) != []


def test_a_short_run_is_judged_by_half_of_it():
    assert dead(6, steps=12) != []
    assert dead(8, steps=12) == []


def test_a_hinge_that_is_satisfied_is_silent():
    assert dead(losses=[1.0] * 6 + [0.0] * 24) == []


def test_a_loss_that_was_not_read_is_no_reason_to_be_silent():
    assert dead(losses=[None] * 30) != []


def test_an_activation_that_passes_something_below_zero_is_no_relu():
    layers = (layer("0"), activation("1"), layer("2"), activation("3", "LeakyReLU"), layer("4"))

    assert dead(layers=layers) == []


# -- ReLU as a function ------------------------------------------------------------------------------------------------


def called(first=6, steps=30, **sizes):
    """Return the findings of a run in which the values in front of a called ReLU are negative from a step on."""
    keys = [(G, "0.weight"), (G, "2.weight"), (G, "4.weight"), (OG, "0"), (OG, "2")]
    usual = {**{key: since(first) for key in keys}, (OUT, "2"): since(first, after=-0.5)}
    return check(SLUG, run(PLAIN, {**usual, **sizes.pop("sizes", {})}, steps=steps))


def test_a_called_relu_is_seen_by_its_neighbours():
    (finding,) = called()

    assert finding.message.startswith("the ReLU behind `2` returned only zeros since step 6")
    assert finding.tensors == ("0.weight", "2.weight")
    assert finding.place == line(31)


def test_a_called_relu_on_the_models_output_is_seen_by_the_zeros_it_returns():
    (finding,) = called(sizes={(OUT, "4"): since(6), (G, "4.weight"): 1.0})

    assert finding.tensors == ("0.weight", "2.weight")


@pytest.mark.parametrize(
    "sizes",
    [
        {(OUT, "2"): 0.5},  # positive values: a product with zero, not a ReLU
        {(OUT, "2"): mixed(zeros=0)},
        {(G, "4.weight"): 1.0},  # what follows was given something
        {(OG, "4"): 0.0},  # the zeros come from further behind
        {(OUT, "2"): NONE},
    ],
)
def test_zeros_that_may_have_another_reason_are_silent(sizes):
    assert called(sizes=sizes) == []


# -- units that die one by one -----------------------------------------------------------------------------------------


def units(silent, zeros=15, rows=10, steps=30, kind="ReLU"):
    layers = (layer("0", rows=rows, silent_rows=silent), activation("1", kind), layer("2"))
    return check(SLUG, run(layers, {(OUT, "1"): mixed(zeros=zeros)}, steps=steps))


def test_a_layer_of_which_hardly_a_unit_is_left_is_a_warning():
    (finding,) = units(silent=9)

    assert finding.severity is Severity.WARNING
    assert finding.tensors == ("0.weight",)
    assert finding.message.startswith("9 of 10 units of `0.weight` got no gradient in the whole run")


@pytest.mark.parametrize(
    "fields",
    [
        {"silent": 8},
        {"silent": 9, "zeros": 10},  # a mask on the weight: the units fire all the same
        {"silent": 7, "rows": 7},
        {"silent": 9, "steps": 9},
        {"silent": 9, "kind": "LeakyReLU"},
    ],
)
def test_silent_rows_alone_are_silent(fields):
    assert units(**fields) == []
