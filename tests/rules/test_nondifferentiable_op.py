"""The operation without a derivative is named, with what is usually done in its place."""

import pytest

from tests.rules.builders import line
from tests.rules.path_builders import cut, found, lost
from whygrad.model import CutKind

SLUG = "nondifferentiable-op"


def said(operation):
    (finding,) = found(SLUG, [lost("score.weight", 1)], [cut(1, CutKind.NONDIFFERENTIABLE, operation)])
    return finding


@pytest.mark.parametrize(
    ("operation", "word"),
    [
        ("argmax", "soft-argmax"),
        ("torch.argmin", "gumbel_softmax"),
        ("topk", "values"),
        ("__gt__", "sigmoid"),
        ("le", "sigmoid"),
        ("logical_and", "sigmoid"),
        ("round_", "straight-through"),
        ("__floordiv__", "straight-through"),
        ("sign", "tanh"),
        ("long", "grid_sample"),
        ("bucketize", "soft bins"),
        ("multinomial", "log-probability"),
        ("nonzero", "soft mask"),
        ("something_new", "smooth relative"),
        ("", "smooth relative"),
    ],
)
def test_each_operation_has_its_usual_substitute(operation, word):
    assert word in said(operation).fix


def test_the_operation_is_named_with_its_line():
    finding = said("__gt__")

    assert finding.place == line(40)
    assert finding.message.endswith("`gt` at train.py:40 has no derivative")


def test_an_operation_that_has_a_derivative_of_zero_is_told_apart():
    assert said("floor").message.endswith("has a derivative of zero everywhere")
    assert said("sign").message.endswith("has a derivative of zero everywhere")


def test_an_operation_without_a_name_is_still_a_sentence():
    assert said("").message.endswith("`this operation` at train.py:40 has no derivative")


def test_a_detach_is_another_rules_case():
    assert found(SLUG, [lost("score.weight", 1)], [cut(1)]) == []
