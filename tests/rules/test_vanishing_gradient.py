"""A gradient that falls from layer to layer is a warning; small ones for any other reason are not."""

import pytest

from tests.rules.builders import check, line
from tests.rules.num_builders import NONE, OG, OUT, G, U, W, activation, layer, run
from whygrad.model import Severity

SLUG = "vanishing-gradient"
DEPTH = 8
NET = tuple(layer(str(number)) for number in range(DEPTH))


def falling(factor, depth=DEPTH):
    """Return gradients that shrink by a factor with each layer on the way back."""
    return {(G, f"{number}.weight"): factor ** (depth - 1 - number) for number in range(depth)}


def found(sizes, layers=NET, **fields):
    return check(SLUG, run(layers, sizes, **fields))


def test_level_gradients_are_silent():
    assert found({}) == []


def test_a_fall_by_a_tenth_in_each_layer_is_a_warning_with_its_numbers():
    (finding,) = found(falling(0.1))

    assert finding.severity is Severity.WARNING
    assert finding.tensors == tuple(f"{number}.weight" for number in range(5))
    assert finding.evidence["layers"] == DEPTH
    assert finding.evidence["ratio"] == pytest.approx(1e-6 / 0.55 / 3, rel=1)
    assert len(finding.evidence["profile"]) == DEPTH
    assert "it shrinks from layer to layer through 8 layers" in finding.message


def test_a_gentle_fall_is_silent():
    assert found(falling(0.5)) == []


def test_small_gradients_everywhere_are_no_fall():
    assert found({(G, "*"): 1e-9}) == []


def test_the_scale_of_the_loss_does_not_matter():
    scaled = {key: 1e-6 * size for key, size in falling(0.1).items()}

    assert len(found(scaled)) == 1


def test_a_fall_that_larger_weights_make_up_for_is_a_matter_of_units():
    sizes = {**falling(0.1), **{(W, f"{number}.weight"): 10.0 ** (DEPTH - number) for number in range(DEPTH)}}

    assert found(sizes) == []


def test_one_starved_branch_among_level_layers_is_no_fall():
    assert found({(G, "0.weight"): 1e-8, (G, "1.weight"): 1e-8}) == []
    assert found({(G, "3.weight"): 1e-8}) == []


def test_a_fall_in_the_first_steps_is_silent():
    sizes = {
        key: lambda step, small=size: small if step < 4 else 1.0  # behind a head that starts at zero
        for key, size in falling(0.1).items()
    }

    assert found(sizes) == []


def test_a_fall_that_training_gets_over_is_silent():
    sizes = {key: lambda step, small=size: small if step < 13 else 1.0 for key, size in falling(0.1).items()}

    assert found(sizes, steps=20) == []


def test_it_takes_four_layers_and_five_steps():
    three = tuple(layer(str(number)) for number in range(3))

    assert found({(G, "0.weight"): 1e-8, (G, "1.weight"): 1e-4}, three) == []
    assert found(falling(0.1), steps=4) == []


def test_tables_and_biases_are_no_layers():
    layers = (
        layer("table", "Embedding"),
        layer("a", attributes=("bias",)),
        layer("b", attributes=("bias",)),
        layer("2"),
        layer("3"),
        layer("4"),
    )

    assert found({(G, "table.weight"): 1e-9, (G, "a.bias"): 1e-7, (G, "b.bias"): 1e-7}, layers) == []


def test_layers_that_different_optimizers_move_are_not_compared():
    parts = tuple(layer(str(number), optimizers=(int(number > 3),)) for number in range(DEPTH))
    sizes = {(G, f"{number}.weight"): 1e-8 for number in range(4)}

    assert found(sizes, parts) == []


def test_steps_before_the_first_nan_count_and_those_after_it_do_not():
    sizes = {key: lambda step, small=size: small if step < 10 else float("nan") for key, size in falling(0.1).items()}

    assert len(found(sizes)) == 1


def test_exact_zeros_are_another_rules():
    assert found({**falling(0.1), (G, "0.weight"): 0.0}) == []


def test_it_is_an_info_where_the_loss_falls_all_the_same():
    (finding,) = found(falling(0.1), losses=[1.0 / (step + 1) for step in range(12)])

    assert finding.severity is Severity.INFO


def test_a_saturating_activation_is_named_in_the_fix():
    layers = [each for number in range(DEPTH) for each in (layer(str(number)), activation(f"s{number}", "Sigmoid"))]
    (finding,) = found(falling(0.1), tuple(layers))

    assert finding.fix.startswith("Replace Sigmoid by")


def test_the_place_is_the_last_of_the_lines_that_most_layers_are_used_on():
    def used(number):
        return line(26 if number == 0 else 14 + number % 2)

    layers = tuple(layer(str(number), used_at=used(number)) for number in range(9))
    (finding,) = found(falling(0.1, 9), layers)

    assert finding.place == line(14)


def test_where_one_line_calls_the_whole_model_the_place_is_where_the_layers_are_made():
    layers = tuple(layer(str(number), used_at=line(40), made_at=line(7)) for number in range(DEPTH))
    (finding,) = found(falling(0.1), layers)

    assert finding.place == line(7)


# -- nothing gets through at all ---------------------------------------------------------------------------------------


TINY = {(G, "*"): 1e-12, (OG, "*"): 1e-12}


def test_a_loss_that_stays_where_it_is_while_nothing_arrives_is_a_collapse():
    (finding,) = found(TINY)

    assert finding.severity is Severity.WARNING
    assert len(finding.tensors) == DEPTH
    assert "would not change the loss" in finding.message


@pytest.mark.parametrize(
    ("sizes", "losses"),
    [
        ({(G, "*"): 1e-12}, None),  # clipped: the gradient of the output is not small
        ({(G, "*"): 1e-12, (OG, "*"): NONE, (OUT, "*"): NONE}, None),  # the outputs were not observed
        (TINY, [1.0 / (step + 1) for step in range(12)]),  # learns
        (TINY, [1e-9] * 12),  # has learned
        (TINY, [None] * 12),
        ({**TINY, (U, "*"): 0.0, (G, "7.weight"): 1e-3}, None),
    ],
)
def test_no_collapse(sizes, losses):
    assert found(sizes, losses=losses) == []
