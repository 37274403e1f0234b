"""A graph that is kept from step to step is told from one that two backward passes share."""

from tests.rules.builders import line
from tests.rules.path_builders import found, stopped
from whygrad.model import Severity

SLUG = "graph-freed"


def freed(**fields):
    known = {"tensor": "signals", "made_at": line(53), "changed_at": line(60), **fields}
    (finding,) = found(SLUG, info=stopped(SLUG, **known))
    return finding


def test_a_tensor_kept_from_an_earlier_step_is_reported_where_it_was_made():
    finding = freed()

    assert finding.severity is Severity.ERROR
    assert finding.tensors == ("signals",)
    assert finding.place == line(53)
    assert finding.also == (line(60),)
    assert finding.message == (
        "`signals`, made at train.py:53, is kept from step to step: its graph was used up by backward at train.py:60"
    )


def test_two_backward_passes_of_one_step_are_reported_at_the_second():
    finding = freed(made_at=None, changed_at=line(50))

    assert finding.place == line(60)
    assert finding.also == (line(50),)
    assert finding.message == (
        "backward at train.py:60 needs what backward at train.py:50 freed: `signals` is in both graphs"
    )
    assert "call backward once" in finding.fix


def test_a_shared_tensor_that_has_no_name_leaves_the_lines_of_backward():
    finding = freed(tensor="", made_at=None)

    assert finding.place == line(60)
    assert finding.tensors == ()
    assert finding.message.endswith("a part of it is in both graphs")


def test_other_ends_are_silent():
    assert found(SLUG, info=stopped("modified-inplace")) == []
    assert found(SLUG) == []
