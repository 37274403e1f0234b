"""What several rules share: words for names and numbers, and choices among the facts."""

import math

import pytest

from tests.rules.builders import evidence, info, line, module, optimizer, parameter, raised, weights
from whygrad.rules._select import by_line, has_crashed, has_moved, held_by, holder, names, optimizer_names
from whygrad.rules._text import counted, named, number, passes, shared_parts


def test_a_sentence_names_the_first_tensor_and_counts_the_others():
    assert named(["a.weight"]) == "`a.weight`"
    assert named(["a.weight", "a.bias", "b"]) == "`a.weight` (+2)"


def test_a_sentence_about_no_tensor_is_an_error():
    with pytest.raises(ValueError, match="not enough values"):
        named([])


def test_counts_agree_with_their_noun():
    assert [counted(n, "step") for n in (0, 1, 2)] == ["0 steps", "1 step", "2 steps"]
    assert [passes(n) for n in (1, 2)] == ["1 backward pass", "2 backward passes"]


def test_numbers_have_three_significant_digits():
    assert [number(x) for x in (0.0, 12.0, 0.001234, 1.2e-9, math.nan, math.inf)] == [
        "0",
        "12",
        "0.00123",
        "1.2e-09",
        "NaN",
        "inf",
    ]


@pytest.mark.parametrize(
    ("given", "shared"),
    [
        (["head.weight", "head.bias"], 1),
        (["a.b.0.weight", "a.b.1.weight"], 2),
        (["a.weight", "b.weight"], 0),
        (["scale"], 0),
        (["a", "a.weight"], 0),
        (["ab.weight", "ac.weight"], 0),
        ([], 0),
    ],
)
def test_shared_parts_of_dotted_names_never_include_the_tensor_itself(given, shared):
    assert shared_parts(given) == shared


def test_each_name_stands_once():
    assert names([parameter("a", 0), parameter("b", 1), parameter("a", 2)]) == ("a", "b")


def test_parameters_are_grouped_by_line_whatever_else_their_places_say():
    one, same, other, nowhere = (
        parameter("a", 0, made_at=line(3, code="x")),
        parameter("b", 1, made_at=line(3)),
        parameter("c", 2, made_at=line(3, file="model.py")),
        parameter("d", 3, made_at=None),
    )

    groups = by_line([one, other, same, nowhere], lambda p: p.made_at)

    assert [(place and (place.file, place.line), names(group)) for place, group in groups] == [
        (("train.py", 3), ("a", "b")),
        (("model.py", 3), ("c",)),
        (None, ("d",)),
    ]


def test_an_optimizer_and_its_parameters_find_each_other():
    one, other = optimizer(0, name="one"), optimizer(1, name="other")
    shared, single = parameter("a", 0, optimizers=(0, 1)), parameter("b", 1, optimizers=(1,))
    run = evidence([shared, single], [one, other])

    assert held_by(run, one) == (shared,)
    assert held_by(run, other) == (shared, single)
    assert optimizer_names(run, shared) == ["one", "other"]


def test_the_holder_of_a_parameter_is_the_module_called_at_its_order():
    run = evidence(modules=(module("a", 0, order=4), module("b", 1, order=7)))

    assert holder(run, parameter("b.weight", 0, order=7)) == run.modules[1]
    assert holder(run, parameter("b.weight", 0, order=None)) is None
    assert holder(run, parameter("b.weight", 0, order=5)) is None


@pytest.mark.parametrize(
    ("series", "moved"), [([0.5, 0.5, 0.5], False), ([0.5, 0.5 + 1e-9], False), ([0.5, 0.5, 0.6], True), ([0.5], False)]
)
def test_a_parameter_has_moved_if_its_recorded_weights_say_so(series, moved):
    assert has_moved(evidence(matrices=weights(series)), parameter("a", 0)) is moved


def test_a_parameter_has_moved_if_torch_counted_a_change():
    assert has_moved(evidence(), parameter("a", 0, changed_outside=1))


def test_a_person_who_stops_a_run_is_no_crash():
    assert not has_crashed(evidence())
    assert not has_crashed(evidence(info=info(raised=raised("", "KeyboardInterrupt"))))
    assert has_crashed(evidence(info=info(raised=raised("boom"))))
