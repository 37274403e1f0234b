"""What takes a value out of the graph is said in the words of the program."""

import pytest

from tests.rules.builders import line
from tests.rules.path_builders import cut, found, lost, stopped
from whygrad.model import CutKind, Severity

SLUG = "detached"


def said(kind, operation, **fields):
    (finding,) = found(SLUG, [lost("gate.weight", 1)], [cut(1, kind, operation, **fields)])
    return finding


@pytest.mark.parametrize(
    ("kind", "operation", "words"),
    [
        (CutKind.DETACH, "detach", "`detach()` takes a tensor out of the graph"),
        (CutKind.DATA, "data", "`.data` is the value without the graph"),
        (CutKind.VALUE, "item", "`item()` takes the value out of torch"),
        (CutKind.VALUE, "array", "`numpy()` takes"),
        (CutKind.COPY, "tensor", "`torch.tensor()` copies the value of a tensor, not its graph"),
        (CutKind.COPY, "nn.Parameter", "`nn.Parameter()` copies"),
        (CutKind.COPY, "data", "`copy.deepcopy()` copies"),
        (CutKind.OVERWRITTEN, "data=", "`.data = ...` writes the value over another tensor, past the graph"),
        (CutKind.OVERWRITTEN, "copy_", "`copy_()` writes"),
        (CutKind.VALUE, "", "`value()` takes"),
    ],
)
def test_the_operation_is_named_as_it_is_written(kind, operation, words):
    assert words in said(kind, operation).message


def test_a_value_that_comes_back_elsewhere_is_followed_to_that_line():
    finding = said(CutKind.VALUE, "item", reentry=line(44))

    assert finding.message.endswith("takes the value out of torch, and comes back as a constant at train.py:44")
    assert finding.place == line(40)
    assert finding.also == (line(44),)


def test_a_value_that_comes_back_on_the_same_line_is_named_once():
    finding = said(CutKind.COPY, "tensor", reentry=line(40))

    assert finding.also == ()


def test_a_value_whose_exit_is_not_known_is_shown_where_it_comes_back():
    assert said(CutKind.VALUE, "item", place=None, reentry=line(44)).place == line(44)


def test_a_link_by_value_is_marked_in_the_evidence():
    assert said(CutKind.VALUE, "item", inferred=True).evidence["inferred"] is True


def test_each_way_has_its_own_fix():
    fixes = {said(kind, "x").fix for kind in (CutKind.DETACH, CutKind.DATA, CutKind.VALUE, CutKind.COPY)}

    assert len(fixes) == 4
    assert "torch.func.functional_call" in said(CutKind.OVERWRITTEN, "data=").fix


def test_a_gradient_without_a_graph_names_the_argument_that_was_left_out():
    finding = said(CutKind.FIRST_ORDER, "autograd.grad")

    assert "`autograd.grad()` without create_graph=True" in finding.message
    assert finding.fix == "Pass create_graph=True to `autograd.grad`"


def test_all_cuts_on_the_way_are_named():
    near, far = cut(1, number=40), cut(1, CutKind.VALUE, "item", 45, distance=5)

    (finding,) = found(SLUG, [lost("gate.weight", 1)], [near, far])

    assert finding.place == line(40)
    assert finding.also == (line(45),)


def test_what_was_compiled_is_not_guessed_at():
    assert found(SLUG, [lost("gate.weight", 1)], [cut(1, CutKind.OPAQUE, "Net")]) == []


@pytest.mark.parametrize("kind", [CutKind.NO_GRAD, CutKind.NONDIFFERENTIABLE, CutKind.CUSTOM])
def test_other_kinds_of_cuts_are_other_rules_cases(kind):
    assert found(SLUG, [lost("gate.weight", 1)], [cut(1, kind, "x")]) == []


def test_numpy_of_a_tensor_that_requires_grad_names_the_tensor_and_its_line():
    (finding,) = found(SLUG, info=stopped("numpy-of-requires-grad", tensor="scores", made_at=line(31)))

    assert finding.severity is Severity.ERROR
    assert finding.tensors == ("scores",)
    assert finding.place == line(60)
    assert finding.also == (line(31),)
    assert "`scores`, made at train.py:31, requires grad" in finding.message


def test_numpy_of_a_tensor_that_nobody_saw_is_still_explained():
    (finding,) = found(SLUG, info=stopped("numpy-of-requires-grad"))

    assert finding.tensors == ()
    assert finding.message.startswith("a tensor requires grad")
