"""Batches of which all samples are equal."""

import pytest

from tests.rules.builders import check, line
from tests.rules.num_builders import layer, run
from whygrad.model import Feed, Severity

NET = (layer("0"), layer("1"))


def feed(id=0, **fields):
    constant = {"name": "0[0]", "kind": "layer", "module": 0, "shape": (8, 4), "dtype": "float32"}
    looks = {"looks": 5, "constant_looks": 5, "low": 0.0, "high": 0.0, "made_at": line(3), "taken_at": line(9)}
    return Feed(**{"id": id, **constant, **looks, **fields})


def found(*feeds):
    return check("constant-input", run(NET, feeds=feeds))


def test_zeros_are_an_error_at_the_line_that_made_the_samples_equal():
    (finding,) = found(feed())

    assert finding.severity is Severity.ERROR
    assert finding.tensors == ("0.weight", "1.weight")
    assert (finding.place, finding.also) == (line(3), (line(9),))
    assert "every sample that enters `0` is zeros at all 5 looks" in finding.message


def test_another_constant_is_a_warning():
    (finding,) = found(feed(low=-0.5, high=2.0))

    assert finding.severity is Severity.WARNING
    assert "between -0.5 and 2" in finding.message


def test_where_no_line_made_it_the_one_that_calls_the_model_is_named():
    (finding,) = found(feed(made_at=None), feed(1, kind="model", name="[0]", taken_at=line(40)))

    assert finding.place == line(40)


@pytest.mark.parametrize(
    "fields",
    [
        {"constant_looks": 4},
        {"looks": 2, "constant_looks": 2},
        {"looks": 0, "constant_looks": 0},
        {"expanded": True},
        {"low": 1.0, "high": 1.0},
    ],
    ids=["varies once", "two looks", "batches of one", "expanded", "ones"],
)
def test_what_varies_or_says_that_it_is_constant_is_silent(fields):
    assert found(feed(**fields)) == []


def test_one_input_that_varies_is_enough():
    assert found(feed(), feed(1, name="1[0]", module=1, constant_looks=0)) == []


def test_a_constant_argument_of_the_model_is_silent_as_long_as_its_layers_get_what_varies():
    assert found(feed(kind="model", name="[0]"), feed(1, constant_looks=0)) == []


def test_a_target_is_no_input():
    assert found(feed(kind="target", module=None)) == []
