"""A term of the loss that was cut has no effect, though its parameters learn by other terms."""

from dataclasses import asdict

import pytest

from tests.rules.builders import line, outsider, parameter
from tests.rules.path_builders import cut, found, lost, lost_term
from whygrad.model import CutKind, PathEnd, Severity

GATE = parameter("gate.weight", 1, path=PathEnd.REACHED)


def test_a_term_that_is_a_copy_is_a_warning_that_names_the_parameters_behind_it():
    (finding,) = found("detached", [GATE], events=(lost_term(0, 1),))

    assert finding.severity is Severity.WARNING
    assert finding.tensors == ("head.weight", "gate.weight")
    assert finding.place == line(49)
    assert finding.message == (
        "a term of the loss gives `head.weight` (+1) no gradient: `torch.tensor()` copies the "
        "value of a tensor, not its graph"
    )


@pytest.mark.parametrize(
    ("slug", "kind", "operation"),
    [
        ("detached", CutKind.VALUE, "item"),
        ("no-grad-region", CutKind.NO_GRAD, "mean"),
        ("nondifferentiable-op", CutKind.NONDIFFERENTIABLE, "eq"),
        ("custom-backward", CutKind.CUSTOM, "Round"),
    ],
)
def test_each_rule_speaks_of_its_own_cuts(slug, kind, operation):
    events = (lost_term(1, kind=kind, operation=operation),)

    (finding,) = found(slug, [GATE], events=events)

    assert finding.severity is Severity.WARNING
    assert found("reentrant-checkpoint", [GATE], events=events) == []


def test_a_whole_term_behind_a_detach_is_an_info():
    (finding,) = found("detached", [GATE], events=(lost_term(1, kind=CutKind.DETACH, operation="detach"),))

    assert finding.severity is Severity.INFO


def test_the_switch_of_grad_mode_and_the_way_back_are_places():
    region = lost_term(1, kind=CutKind.NO_GRAD, operation="mean", mode="torch.no_grad()", mode_at=asdict(line(44)))
    number = lost_term(1, kind=CutKind.VALUE, operation="item", reentry=asdict(line(52)), inferred=True)

    (under,) = found("no-grad-region", [GATE], events=(region,))
    (back,) = found("detached", [GATE], events=(number,))

    assert (under.place, under.also) == (line(44), (line(49),))
    assert (back.place, back.also) == (line(49), (line(52),))
    assert back.evidence["inferred"] is True


def test_a_number_of_an_earlier_step_is_silent():
    average = lost_term(1, kind=CutKind.VALUE, operation="item", reentry=asdict(line(44)), inferred=True)

    assert found("detached", [GATE], events=(average,)) == []


@pytest.mark.parametrize(
    "teacher",
    [outsider("teacher.weight", 1), parameter("teacher.weight", 1, requires_grad=False)],
)
def test_a_term_of_what_nothing_trains_is_silent(teacher):
    assert found("detached", [teacher], events=(lost_term(1),)) == []


def test_a_line_that_keeps_parameters_from_any_gradient_is_said_once():
    gone = lost("gate.bias", 2)
    events = (lost_term(1, 2), lost_term(1, number=60))

    findings = found("detached", [GATE, gone], [cut(2, CutKind.COPY, "tensor", 49)], events=events)

    assert [(finding.tensors, finding.place) for finding in findings] == [
        (("gate.bias",), line(49)),
        (("gate.weight",), line(60)),
    ]
