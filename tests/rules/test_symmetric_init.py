"""Units that start equal and stay equal."""

import pytest

from tests.rules.builders import check, line, parameter
from tests.rules.num_builders import layer, run
from whygrad.model import Severity, Symmetry

NET = (layer("0", written_at=line(7)), layer("1", written_at=line(8)))


def symmetry(id=0, **fields):
    return Symmetry(**{"id": id, "dimension": 0, "units": 4, "looks": 4, "last_step": 11, "difference": 1e-7, **fields})


def found(*symmetries, layers=NET):
    return check("symmetric-init", run(layers, symmetries=symmetries))


def test_the_factors_of_one_model_are_one_finding_at_the_line_that_wrote_the_first():
    (finding,) = found(symmetry(0, dimension=1), symmetry(1))

    assert finding.severity is Severity.WARNING
    assert finding.tensors == ("0.weight", "1.weight")
    assert finding.place == line(7)
    assert finding.also == (line(8),)
    assert "all 4 columns of `0.weight` (+1)" in finding.message


@pytest.mark.parametrize("fields", [{"looks": 2}, {"last_step": 1}], ids=["seen twice", "seen early only"])
def test_what_may_have_parted_since_is_silent(fields):
    assert found(symmetry(**fields)) == []


def test_the_positions_of_a_kernel_are_no_units():
    assert found(symmetry(dimension=2), layers=(layer("0", "Conv2d"), layer("1"))) == []


def test_what_is_not_trained_may_be_equal():
    assert found(symmetry(), layers=(layer("0", gradient_steps=0), layer("1"))) == []


def test_a_parameter_without_a_line_is_named_all_the_same():
    (finding,) = found(symmetry(), layers=(layer("0", made_at=None), layer("1")))

    assert finding.place is None
    assert finding.tensors == (parameter("0.weight", 0).name,)
