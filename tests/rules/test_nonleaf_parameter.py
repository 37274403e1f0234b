"""A tensor that was meant as a parameter and is the output of an operation is reported where it is made."""

from tests.rules.builders import line
from tests.rules.path_builders import found, lost, stopped
from whygrad.model import PathEnd, Severity

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


def test_one_tensor_is_reported_once():
    facts = stopped("non-leaf-parameter", tensor="points", made_at=line(35))

    assert len(found(SLUG, [nonleaf()], info=facts)) == 1


def test_a_gradient_that_is_there_after_all_is_silent():
    assert found(SLUG, [nonleaf(gradient_steps=1)]) == []
    assert found(SLUG, [nonleaf(path=PathEnd.CUT)]) == []
