"""Targets and inputs of very different scales."""

import math

import pytest

from tests.rules.builders import check, line
from tests.rules.num_builders import layer, run
from whygrad.model import Feed, Severity

NET = (layer("0"), layer("1", attributes=("weight", "bias")))


def target(**fields):
    given = {"name": "mse_loss", "kind": "target", "module": None, "shape": (8, 4), "dtype": "float32", "looks": 3}
    spread = {"smallest_std": 0.3, "largest_std": 2600.0, "made_at": line(3), "taken_at": line(9)}
    return Feed(**{"id": 0, **given, **spread, **fields})


def entering(**fields):
    given = {"name": "0[0]", "kind": "layer", "module": 0, "shape": (8, 4), "dtype": "float32", "looks": 3}
    return Feed(
        **{"id": 1, **given, "mean": 120.0, "std": 60.0, "low": 0.0, "high": 255.0, "made_at": line(4), **fields}
    )


def found(*feeds, layers=NET, **fields):
    return check("unscaled-data", run(layers, feeds=feeds, **fields))


def test_columns_of_all_scales_are_a_warning_for_the_last_layer_where_the_target_was_made():
    (finding,) = found(target())

    assert finding.severity is Severity.WARNING
    assert finding.tensors == ("1.weight", "1.bias")
    assert (finding.place, finding.also) == (line(3), (line(9),))
    assert "from 0.3 to 2.6e+03" in finding.message


@pytest.mark.parametrize("largest", [29.0, math.nan], ids=["within a hundred", "one column, or weighed"])
def test_columns_of_like_scales_are_silent(largest):
    assert found(target(largest_std=largest)) == []


def test_large_inputs_are_a_warning_while_the_loss_stands_still():
    (finding,) = found(entering(), steps=24)

    assert finding.severity is Severity.WARNING
    assert finding.tensors == ("0.weight",)
    assert finding.place == line(4)


def test_large_inputs_are_silent_where_the_loss_falls():
    assert found(entering(), steps=24, losses=[1.0 - 0.02 * step for step in range(24)]) == []


def test_large_inputs_are_silent_where_a_normalisation_follows():
    layers = (layer("0"), layer("norm", "BatchNorm1d"), layer("1"))

    assert found(entering(), layers=layers, steps=24) == []


def test_ids_of_words_are_no_sizes():
    assert found(entering(), layers=(layer("0", "Embedding"), layer("1")), steps=24) == []
