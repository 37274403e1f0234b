"""A tensor that was meant as a parameter and is the output of an operation is reported where it is made."""

from dataclasses import asdict

import pytest

from tests.rules.builders import event, line, parameter
from tests.rules.path_builders import found, lost, stopped
from whygrad.model import PathEnd, Severity
from whygrad.rules._source import assigned_name, buries_a_leaf

SLUG = "nonleaf-parameter"


def nonleaf(name="points", **fields):
    made = {"path": PathEnd.NON_LEAF, "ends_at": line(35), "ends_with": "view", "optimizers": (), "used_at": line(39)}
    return lost(name, 1, **{**made, **fields})


def test_what_the_optimizer_refuses_is_an_error_at_the_line_that_made_it():
    (finding,) = found(SLUG, info=stopped("non-leaf-parameter", tensor="images", operation="mul", made_at=line(20)))

    assert finding.severity is Severity.ERROR
    assert finding.tensors == ("images",)
    assert finding.place == line(20)
    assert finding.also == (line(60),)
    assert finding.message == ("`images` is the output of `mul` at train.py:20, no leaf: the optimizer cannot hold it")


def test_a_tensor_that_nobody_saw_being_made_is_shown_at_the_optimizer():
    (finding,) = found(SLUG, info=stopped("non-leaf-parameter"))

    assert finding.place == line(60)
    assert finding.message.startswith("a tensor is the output of an operation, no leaf")


def test_what_is_updated_by_hand_is_an_error_too():
    (finding,) = found(SLUG, [nonleaf()])

    assert finding.tensors == ("points",)
    assert finding.place == line(35)
    assert finding.also == (line(39),)
    assert "is the output of `view` at train.py:35, no leaf: its `.grad` stays None" in finding.message


def buried(code="self.scale = nn.Parameter(torch.ones(4)) * 0.5", **fields):
    loose = {"registered": False, "held_in": "variable", "attribute": "", "root": "", "optimizers": ()}
    return parameter("tensor2", 1, **{**loose, "made_at": line(9, code=code), **fields})


def test_a_leaf_that_only_its_product_holds_is_an_error_under_the_name_of_the_product():
    (finding,) = found(SLUG, [buried()])

    assert finding.severity is Severity.ERROR
    assert finding.tensors == ("scale",)
    assert finding.place == line(9, code="self.scale = nn.Parameter(torch.ones(4)) * 0.5")
    assert finding.message == (
        "`scale` is computed at train.py:9 from a leaf that nothing else holds: the leaf gets the gradient in 10 of 10 "
        "backward passes"
    )
    assert found("not-in-optimizer", [buried()]) == []


@pytest.mark.parametrize(
    "other",
    [
        buried(reached=1),  # made anew in each step
        buried(attribute="scale"),  # a variable holds it
        buried(optimizers=(0,)),
        buried(code="self.scale = nn.Parameter(torch.ones(4))"),
        buried(code="nn.Parameter(torch.ones(4)) * 0.5,"),  # a part of a statement
        buried(made_at=None),
    ],
)
def test_a_leaf_that_is_held_or_plain_is_silent(other):
    assert found(SLUG, [other]) == []


def read(code, **detail):
    made = asdict(line(4, code=code))
    reads = event("intermediate_grad_read", place=line(10), subject="w", count=5, made_at=made, **detail)
    return found(SLUG, events=(reads,))


def test_a_gradient_that_is_read_of_what_hides_a_leaf_is_an_error_where_it_is_hidden():
    (finding,) = read("w = torch.zeros(3, requires_grad=True).double()")

    assert finding.tensors == ("w",)
    assert (finding.place.line, finding.also) == (4, (line(10),))
    assert finding.message.startswith("`w` is computed at train.py:4 from a leaf that nothing else holds")


def test_a_gradient_that_is_read_of_an_activation_is_another_rules_case():
    assert read("h = encoder(torch.randn(4, requires_grad=True))") == []
    assert read("h = encoder(x).relu()") == []
    assert read("w = torch.zeros(3, requires_grad=True).double()", retains_grad=True) == []


@pytest.mark.parametrize(
    ("code", "is_buried"),
    [
        ("x = torch.randn(3, requires_grad=True) * 0.1", True),
        ("x = 0.1 * torch.randn(3, requires_grad=True)", True),
        ("x = -torch.randn(3, requires_grad=True)", True),
        ("x = torch.randn(3, requires_grad=True)[1:]", True),
        ("return torch.tensor(flat, requires_grad=True).view(3, 1, 2)", True),
        ("x: Tensor = nn.Parameter(torch.ones(3)).to(device)", True),
        ("x = torch.ones(3).requires_grad_().float()", True),
        ("x = (torch.randn(3) * 0.1).requires_grad_()", False),
        ("x = torch.randn(3, requires_grad=True)", False),
        ("x = torch.randn(3, requires_grad=False) * 0.1", False),
        ("x = nn.Parameter(torch.randn(3, requires_grad=True) * 0.1)", False),
        ("x = model(torch.randn(3, requires_grad=True))", False),
        ("model(x)", False),
        ("x = (", False),
        ("", False),
    ],
)
def test_a_line_buries_a_leaf_if_it_computes_on_with_it(code, is_buried):
    assert buries_a_leaf(line(4, code=code)) is is_buried
    assert not buries_a_leaf(None)


@pytest.mark.parametrize(
    ("code", "name"),
    [("self.a.w = f(x)", "a.w"), ("w = 1", "w"), ("a = b = 1", ""), ("return x", ""), ("w[0] = 1", "w[0]"), ("", "")],
)
def test_the_name_of_a_tensor_is_what_its_line_assigns(code, name):
    assert assigned_name(line(4, code=code)) == name


def test_a_gradient_that_is_there_after_all_is_silent():
    assert found(SLUG, [nonleaf(gradient_steps=1)]) == []
    assert found(SLUG, [nonleaf(path=PathEnd.CUT)]) == []
