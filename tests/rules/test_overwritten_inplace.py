"""A write in place that autograd refuses is reported with the tensor, its line and the write."""

from tests.rules.builders import info, line, raised
from tests.rules.path_builders import found, stopped
from whygrad.model import Severity

SLUG = "overwritten-inplace"


def modified(**fields):
    known = {"tensor": "h", "operation": "div_", "made_at": line(19), "changed_at": line(21), **fields}
    (finding,) = found(SLUG, info=stopped("modified-inplace", **known))
    return finding


def test_the_place_is_the_write():
    finding = modified()

    assert finding.severity is Severity.ERROR
    assert finding.tensors == ("h",)
    assert finding.place == line(21)
    assert finding.also == (line(19), line(60))
    assert finding.message == (
        "`h`, made at train.py:19, was changed in place by `div_` at train.py:21 before backward at train.py:60 used "
        "its old value"
    )
    assert finding.fix == "Write to a new tensor at train.py:21, not in place"


def test_an_optimizer_that_steps_too_early_has_a_fix_of_its_own():
    finding = modified(tensor="head.weight", operation="step")

    assert "before the optimizer steps" in finding.fix
    assert finding.message.startswith("`head.weight`, used at train.py:19, was changed in place by `step`")


def test_a_write_that_was_not_seen_leaves_the_line_of_the_tensor():
    assert modified(changed_at=None).place == line(19)
    assert modified(changed_at=None, made_at=None).place == line(60)


def test_a_leaf_is_reported_where_it_is_written():
    (finding,) = found(SLUG, info=stopped("inplace-on-leaf", tensor="start", operation="sub_"))

    assert finding.tensors == ("start",)
    assert finding.place == line(60)
    assert "torch.no_grad()" in finding.fix


def test_other_ends_are_silent():
    assert found(SLUG, info=stopped("graph-freed")) == []
    assert found(SLUG, info=info(raised=raised("modified by an inplace operation"))) == []
    assert found(SLUG) == []
