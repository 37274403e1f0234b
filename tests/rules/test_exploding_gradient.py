"""Gradients that grow over steps, over time or over depth are found; large, clipped and rare ones are not."""

import math
from dataclasses import replace

import pytest

from tests.rules.builders import check, info, line
from tests.rules.num_builders import OG, G, U, W, layer, run
from whygrad.model import Severity

SLUG = "exploding-gradient"
NET = (layer("0"), layer("2"))
RECURRENT = (layer("rnn", "RNN", ("weight_hh_l0",)), layer("head"))


def at(when, value, usual):
    return lambda step: value if step == when else usual


def found(sizes, layers=NET, **fields):
    return check(SLUG, run(layers, sizes, **fields))


def test_level_gradients_are_silent():
    assert found({}) == []


# -- over the steps ----------------------------------------------------------------------------------------------------


def test_a_jump_that_throws_the_weights_away_is_an_error_at_the_line_of_the_optimizer():
    (finding,) = found({(G, "*"): at(5, 5000.0, 1.0), (U, "0.weight"): at(5, 20.0, 0.01)})

    assert finding.severity is Severity.ERROR
    assert finding.place == line(20)
    assert finding.tensors == ("0.weight", "2.weight")
    assert finding.evidence["step"] == 5
    assert finding.evidence["update_against_weight"] == pytest.approx(20)
    assert "at step 5, 5e+03 times its median before, and an update was 20 times its weight" in finding.message


def test_only_what_jumped_is_named():
    (finding,) = found({(G, "2.weight"): at(5, 5000.0, 1.0), (U, "2.weight"): at(5, 20.0, 0.01)})

    assert finding.tensors == ("2.weight",)


@pytest.mark.parametrize(
    "sizes",
    [
        {(G, "*"): at(5, 5000.0, 1.0)},  # an outlier whose update stays small
        {(G, "*"): at(5, 20.0, 1.0), (U, "*"): at(5, 20.0, 0.01)},
        {(G, "*"): 5000.0, (U, "0.weight"): at(0, 5.0, 0.01)},  # large targets from the start
        {(G, "*"): lambda step: 5000.0 / (step + 1)},
        {(G, "*"): at(5, 5000.0, 1.0), (W, "*"): at(5, 0.0, 1.0), (U, "*"): at(5, 2.0, 0.01)},  # a start at zero
    ],
)
def test_large_gradients_that_do_no_harm_are_silent(sizes):
    assert found(sizes) == []


def test_after_one_step_only_a_far_greater_jump_counts():
    update = {(U, "*"): at(1, 20.0, 0.01)}

    assert found({(G, "*"): at(1, 5e3, 1.0), **update}) == []
    assert len(found({(G, "*"): at(1, 5e4, 1.0), **update})) == 1


def first_step(gradient, update, broken=True):
    after = math.nan if broken else 1.0
    return found({(G, "*"): at(0, gradient, after), (U, "*"): at(0, update, after if broken else 0.01)})


def test_a_first_step_that_ends_in_nan_has_no_steps_before_it():
    (finding,) = first_step(1e20, 1e18)

    assert "was 5.66e+20 at step 0, and an update was 1e+18 times its weight" in finding.message


def test_a_first_step_that_is_large_but_ends_well_is_silent():
    assert first_step(1e20, 1e18, broken=False) == []
    assert first_step(1e4, 1e18) == []
    assert first_step(1e20, 10.0) == []


def test_the_growth_before_a_nan_is_found_in_steps_that_a_sample_would_miss():
    def gradient(step):
        return math.nan if step > 401 else 1e6 if step == 401 else 1.0

    sizes = {(G, "*"): gradient, (U, "*"): at(401, 50.0, 0.01)}
    (finding,) = found(sizes, steps=600)

    assert finding.evidence["step"] == 401


def test_a_jump_between_two_sampled_steps_is_found():
    (finding,) = found({(G, "*"): at(201, 1e6, 1.0), (U, "*"): at(201, 50.0, 0.01)}, steps=400)

    assert finding.evidence["step"] == 201


def test_models_that_one_optimizer_moves_are_one_finding():
    layers = (layer("0", root="body"), layer("1", root="head"))
    (finding,) = found({(G, "*"): at(5, 5000.0, 1.0), (U, "*"): at(5, 20.0, 0.01)}, layers)

    assert finding.tensors == ("0.weight", "1.weight")


# -- over time ---------------------------------------------------------------------------------------------------------


def test_a_recurrent_layer_that_jumps_leads_to_the_line_that_uses_it():
    (finding,) = found({(G, "*"): at(5, 5000.0, 1.0), (U, "*"): at(5, 20.0, 0.01)}, RECURRENT)

    assert finding.place == line(30)
    assert "`rnn.weight_hh_l0` is applied at every time step" in finding.message


def called(times):
    """Return the outputs of the two layers, the first of which is called so many times at each of 12 steps."""
    first, second = run(NET).outputs
    return replace(first, calls=12 * times, gradient_calls=12 * times), second


JUMP = {(G, "*"): at(5, 5000.0, 1.0), (U, "*"): at(5, 20.0, 0.01)}


def test_a_module_that_is_called_in_a_loop_is_recurrent():
    (finding,) = found(JUMP, outputs=called(17))

    assert finding.place == line(30)
    assert "`0.weight` is used 17 times in one pass" in finding.message


def test_accumulating_over_batches_is_no_recurrence():
    (finding,) = found(JUMP, outputs=called(8), info=info(steps=12, backwards=96))

    assert finding.place == line(20)


def test_heavy_tails_of_a_recurrent_gradient_are_a_warning():
    (finding,) = found({(G, "rnn.weight_hh_l0"): at(5, 600.0, 2.0)}, RECURRENT)

    assert finding.severity is Severity.WARNING
    assert finding.tensors == ("rnn.weight_hh_l0",)
    assert "600 times the weight's own norm, 300 times its median" in finding.message


def test_heavy_tails_that_end_in_nan_are_an_error():
    def gradient(step):
        return math.nan if step > 8 else 600.0 if step == 5 else 2.0

    (finding,) = found({(G, "rnn.weight_hh_l0"): gradient}, RECURRENT)

    assert finding.severity is Severity.ERROR


@pytest.mark.parametrize(
    "gradient",
    [at(5, 50.0, 1.0), 600.0, at(5, 600.0, 100.0), lambda step: 6000.0 / (step + 1) ** 3],
    ids=["bounded", "large throughout", "short tail", "large at the start"],
)
def test_recurrent_gradients_that_are_bounded_or_large_throughout_are_silent(gradient):
    assert found({(G, "rnn.weight_hh_l0"): gradient}, RECURRENT) == []


def test_the_same_tails_in_a_layer_that_is_used_once_are_silent():
    assert found({(G, "0.weight"): at(5, 600.0, 2.0)}) == []


# -- over depth --------------------------------------------------------------------------------------------------------


DEEP = tuple(layer(str(number)) for number in range(9))


def growing(factor):
    return {(OG, str(number)): factor ** (8 - number) for number in range(9)}


def test_a_growth_from_layer_to_layer_is_a_warning():
    (finding,) = found(growing(10.0), DEEP)

    assert finding.severity is Severity.WARNING
    assert finding.evidence["ratio"] == pytest.approx(1e6)
    assert "`0.weight` (+5)" in finding.message


def test_a_growth_that_ends_in_nan_is_an_error_even_after_one_step():
    (finding,) = found({**growing(10.0), (G, "*"): lambda step: math.nan if step else 1.0}, DEEP)

    assert finding.severity is Severity.ERROR


def test_a_gentle_growth_and_a_single_large_output_are_silent():
    assert found(growing(2.0), DEEP) == []
    assert found({(OG, "0"): 1e6}, DEEP) == []
    assert found({(OG, str(number)): 1e6 for number in range(3)}, DEEP) == []


def test_few_layers_are_silent():
    assert found({(OG, "0"): 1e9, (OG, "1"): 1e4}, DEEP[:3]) == []
