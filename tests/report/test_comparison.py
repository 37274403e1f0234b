import math
import re
from dataclasses import replace

import pytest

from tests.report.builders import Shown, evidence, finding, info, parameter, total
from tests.report.goldens import assert_golden
from whygrad.errors import RunFileError
from whygrad.model import Role, Severity, Statistics, Total
from whygrad.report.comparison import compare, labels_of

DEPTH = 4


def run(*sizes, found=(), argv=(), prefix="", **fields):
    """Return a run whose weights have these mean sizes of gradient, nearest the input first."""
    names = [f"{prefix}{2 * i}.{kind}" for i in range(len(sizes)) for kind in ("weight", "bias")]
    given = [parameter(name, i, order=i, shape=(8, 8) if i % 2 == 0 else (8,)) for i, name in enumerate(names)]
    totals = [total(2 * i, [size, -size] * 32, steps=10) for i, size in enumerate(sizes) if size is not None]
    return Shown((evidence(given=given, totals=totals, argv=argv, **fields),), tuple(found))


RELU = run(1.6e-2, 2.1e-2, 4.0e-2, argv=("--activation", "relu"))
SIGMOID = run(1.29e-4, 1.9e-3, 3.1e-2, argv=("--activation", "sigmoid"))


def sentence(a, b):
    return compare(a, b, ("A", "B")).sentences[0]


def test_sentence_names_the_layer_nearest_the_input_and_how_much_less_it_gets():
    assert (
        "With sigmoid, `0.weight` (nearest the input) gets 124 times less gradient than with relu."
        == (compare(RELU, SIGMOID).sentences[0])
    )


def test_sentence_is_the_same_the_other_way_round():
    assert compare(RELU, SIGMOID).sentences[0] == compare(SIGMOID, RELU).sentences[0]


def test_second_sentence_tells_what_happens_over_the_depth():
    said = "the gradient shrinks 2.5 times with relu and shrinks 240 times with sigmoid"

    assert f"From `4.weight` down to `0.weight`, {said}." == compare(RELU, SIGMOID).sentences[1]


@pytest.mark.parametrize(
    ("first", "second", "said"),
    [
        (1.0, 1.2, "`0.weight` (nearest the input) gets about as much gradient with A as with B."),
        (0.0, 0.0, "`0.weight` (nearest the input) gets no gradient at all in either run."),
        (1.0, 0.0, "With B, `0.weight` (nearest the input) gets no gradient at all; with A it gets some."),
        (0.0, 1.0, "With A, `0.weight` (nearest the input) gets no gradient at all; with B it gets some."),
        (1.0, 0.4, "With B, `0.weight` (nearest the input) gets 2.5 times less gradient than with A."),
    ],
)
def test_sentence_for_every_ratio(first, second, said):
    assert said == sentence(run(first), run(second))


def test_gradient_without_a_finite_element_gives_no_ratio():
    broken = run(1.0)
    nan = Total(Role.GRADIENT, 0, steps=3, statistics=Statistics(count=64, nans=64))
    broken = replace(broken, ranks=(replace(broken.evidence, totals=(nan,)),))

    assert "`0.weight` (nearest the input) has no finite gradient in one of the runs." == sentence(run(1.0), broken)
    assert "NaN" in compare(run(1.0), broken).render()


def test_layer_that_one_run_did_not_record_is_passed_over():
    assert "`2.weight` (nearest the input)" in sentence(run(None, 1.0), run(1.0, 1.0))


def test_nothing_recorded_is_said():
    assert "No parameter has a recorded gradient in both runs." == sentence(run(None), run(1.0))
    assert "No parameter has a recorded gradient in both runs." == sentence(Shown((evidence(),)), run(1.0))


def test_numbers_per_parameter():
    first, second = compare(RELU, SIGMOID).parameters[:2]

    assert ("0.weight", 10, 1.6e-2) == (first.a.name, first.a.steps, pytest.approx(first.a.mean_abs))
    assert math.sqrt(64 * 1.6e-2**2 / 10) == pytest.approx(first.a.l2)
    assert 124.0 == pytest.approx(first.ratio, rel=0.01)
    assert math.isnan(second.ratio)
    assert (10, 10) == compare(RELU, SIGMOID).steps


def test_picture_shows_one_row_per_layer():
    assert ["0.weight", "2.weight", "4.weight"] == [layer.a.name for layer in compare(RELU, SIGMOID).layers]


def test_model_of_vectors_shows_them_all():
    scales = Shown((evidence(given=[parameter("scale", shape=(8,))]),))

    assert ["scale"] == [layer.a.name for layer in compare(scales, scales).layers]


def test_renamed_layers_show_both_names_and_say_how_they_were_aligned():
    text = compare(RELU, run(1.0, 1.0, 1.0, prefix="net.")).render()

    assert "0.weight = net.0.weight" in text
    assert "6 by order and shape" in text


def test_findings_are_new_gone_or_the_same():
    vanishing = finding("vanishing-gradient", Severity.WARNING, ["0.weight", "2.weight"])
    dead = finding("dead-relu", Severity.WARNING, ["1"])
    frozen = finding("frozen-parameter", Severity.INFO, ["4.weight"])
    whole = finding("no-step")
    a = run(1.0, 1.0, 1.0, found=[dead, frozen, whole])
    b = run(1.0, 1.0, 1.0, found=[vanishing, replace(frozen, tensors=("4.weight", "4.bias")), whole])

    comparison = compare(a, b)

    assert (vanishing,) == comparison.new
    assert (dead,) == comparison.gone
    assert ["frozen-parameter", "no-step"] == [f.rule for f in comparison.same]


def test_findings_follow_renamed_parameters():
    a = run(1.0, found=[finding("dead", tensors=["0.weight"])])
    b = run(1.0, prefix="net.", found=[finding("dead", tensors=["net.0.weight"])])

    assert 1 == len(compare(a, b).same)


def test_same_rule_on_other_tensors_is_new():
    a = run(1.0, 1.0, found=[finding("dead", tensors=["0.weight"])])
    b = run(1.0, 1.0, found=[finding("dead", tensors=["2.weight"])])

    assert (1, 1, 0) == tuple(map(len, (compare(a, b).new, compare(a, b).gone, compare(a, b).same)))


@pytest.mark.parametrize(
    ("a", "b", "labels"),
    [
        (("--activation", "relu"), ("--activation", "tanh"), ("relu", "tanh")),
        (("--activation=relu",), ("--activation=tanh",), ("relu", "tanh")),
        (("--relu",), ("--tanh",), ("--relu", "--tanh")),
        (("--lr=1", "--seed=1"), ("--lr=2", "--seed=2"), ("A", "B")),
        ((), ("--tanh",), ("A", "B")),
        (("x",), ("x",), ("A", "B")),
        (("--a=",), ("--a=1",), ("--a=", "--a=1")),
    ],
)
def test_labels_are_the_argument_that_differs(a, b, labels):
    assert labels == labels_of(info(argv=a), info(argv=b))


def test_labels_are_the_scripts_where_those_differ():
    assert ("old.py", "new.py") == labels_of(info(script="/a/old.py"), info(script="/b/new.py"))


def test_labels_can_be_given():
    assert ("one", "two") == compare(RELU, SIGMOID, labels=("one", "two")).labels


def test_comparison_as_text():
    found = finding("vanishing-gradient", Severity.WARNING, ["0.weight"], message="`0.weight` gets 240 times less")
    frozen = finding("frozen-parameter", Severity.INFO, ["4.bias"], message="`4.bias` is frozen")

    comparison = compare(replace(RELU, findings=(frozen,)), replace(SIGMOID, findings=(found, frozen)))

    assert_golden(comparison.render(color=False, width=80), "comparison.txt")
    assert_golden(comparison.render(color=True, width=80), "comparison-color.txt")
    assert str(comparison) == comparison.render()


def test_text_without_colour_is_ascii_and_keeps_to_the_width():
    text = compare(RELU, SIGMOID).render(width=80)

    assert text.isascii()
    assert max(map(len, text.splitlines())) <= 80


def test_hostile_labels_and_names_do_nothing():
    evil = "\x1b[2J[red]"
    text = compare(run(1.0, prefix=evil), run(2.0, prefix=evil), labels=(evil, "\r")).render(color=True)

    assert all(line.isprintable() for line in re.sub(r"\x1b\[[0-9;]*m", "", text).splitlines())


def test_path_that_is_no_run_is_a_clear_error(tmp_path):
    with pytest.raises(RunFileError, match="does not exist"):
        compare(tmp_path / "nothing", RELU)
