"""A loss that is no function of the parameters is reported; a surrogate that is constant on purpose is not loud."""

from dataclasses import asdict, replace

import pytest

from tests.rules.builders import check, event, evidence, info, line, never_stepped, optimizer, parameter
from tests.rules.path_builders import lost, stopped
from whygrad.model import PathEnd, Severity, Step

SLUG = "constant-loss"
BACKWARD = event("backward", place=line(50), count=10)


def adrift(name, id, **fields):
    return lost(name, id, **{"path": PathEnd.IGNORED, "ends_at": line(19), **fields})


def run(*parameters, **fields):
    return check(SLUG, evidence(parameters, **{"optimizers": (optimizer(),), "events": (BACKWARD,), **fields}))


def test_a_loss_that_reaches_no_parameter_is_an_error_at_the_line_that_made_the_constant():
    constant = event("constant_loss", place=line(38))

    (finding,) = run(adrift("stem.weight", 0), adrift("box.weight", 1), events=(BACKWARD, constant))

    assert finding.severity is Severity.ERROR
    assert finding.tensors == ("stem.weight", "box.weight")
    assert finding.place == line(38)
    assert finding.also == (line(50), line(19))
    assert finding.message == (
        "the loss depends on no parameter that is to learn: 0 of 10 backward passes reached `stem.weight` (+1), which "
        "`optimizer` holds"
    )


def test_without_the_constant_the_line_of_backward_is_left():
    (finding,) = run(adrift("stem.weight", 0))

    assert finding.place == line(50)


def test_a_loss_that_cannot_be_differentiated_is_an_error_where_it_was_made():
    facts = stopped("does-not-require-grad", made_at=line(45))
    given = adrift("stem.weight", 0, walked=0, steps=0)

    (finding,) = run(given, optimizers=(never_stepped(),), info=facts, events=())

    assert finding.place == line(45)
    assert "backward raised, and `stem.weight` got no gradient" in finding.message


def test_what_is_frozen_beside_it_changes_nothing():
    frozen = adrift("body.weight", 1, path=PathEnd.FROZEN, requires_grad=False)

    (finding,) = run(adrift("stem.weight", 0), frozen)

    assert finding.tensors == ("stem.weight",)
    assert run(frozen) == []


def test_a_model_that_was_never_called_is_no_part_of_the_loss_either():
    assert len(run(adrift("stem.weight", 0, path=PathEnd.UNUSED))) == 1


@pytest.mark.parametrize(
    "other",
    [
        adrift("head.weight", 1, path=PathEnd.CUT),  # another rule knows where
        adrift("head.weight", 1, path=None),
        parameter("head.weight", 1),
        parameter("gate.weight", 1, root="other", optimizers=()),  # the wrong model: what it is to do is not known
        adrift("head.weight", 1, changed_outside=3),
    ],
)
def test_a_loss_that_depends_on_something_or_is_cut_is_silent(other):
    assert run(adrift("stem.weight", 0), other) == []


def test_two_passes_are_too_few():
    assert run(adrift("stem.weight", 0, walked=2), info=info(backwards=2)) == []


def test_another_exception_is_no_evidence():
    assert run(adrift("stem.weight", 0), info=stopped("graph-freed")) == []


def test_a_program_without_parameters_is_silent():
    assert run() == []
    assert run(info=stopped("does-not-require-grad")) == []


def late(*parameters, **fields):
    facts = replace(stopped("does-not-require-grad", tensor="loss", **fields), steps=57)
    return run(*parameters, info=facts)


def test_a_loss_that_loses_its_gradient_in_mid_run_is_an_error_where_backward_raised():
    (finding,) = late(parameter("stem.weight", 0))

    assert finding.severity is Severity.ERROR
    assert finding.tensors == ("stem.weight",)
    assert finding.place == line(60)
    assert finding.message.startswith("after 57 steps `loss` does not require grad any more")


def test_a_loss_that_lost_its_gradient_for_a_known_reason_is_silent():
    assert late(parameter("stem.weight", 0), operation="no_grad", changed_at=line(12)) == []
    assert late(parameter("stem.weight", 0, requires_grad=False)) == []
    assert late(lost("stem.weight", 0)) == []


# -- a value that never changes ----------------------------------------------------------------------------------------


def steps(losses, gradient=0.3, update=0.01):
    return tuple(
        Step(number, 0, 0.0, 1, loss, (0.1,), recorded=True, gradient_l2=gradient, weight_l2=1.0, update_l2=update)
        for number, loss in enumerate(losses)
    )


def value(taken, grad_fn="SubBackward0", **detail):
    events = (event("backward", place=line(50), grad_fn=grad_fn, **detail),)
    return run(parameter("stem.weight", 0), steps=taken, events=events)


def test_a_difference_that_is_always_zero_is_a_warning_at_the_line_that_made_it():
    (finding,) = value(steps([0.0] * 12), made_at=asdict(line(40)))

    assert finding.severity is Severity.WARNING
    assert finding.tensors == ("stem.weight",)
    assert finding.place == line(40)
    assert finding.also == (line(50),)
    assert finding.message == (
        "the loss of `optimizer` is 0 at all 12 steps, whatever the weights are, while the gradient's norm is 0.3"
    )


@pytest.mark.parametrize(("loss", "grad_fn"), [(0.0, "NegBackward0"), (1.0, "DivBackward0")])
def test_a_surrogate_that_is_constant_by_construction_is_an_info(loss, grad_fn):
    (finding,) = value(steps([loss] * 12), grad_fn)

    assert finding.severity is Severity.INFO
    assert finding.place == line(50)


@pytest.mark.parametrize(
    "taken",
    [
        steps([0.0] * 9),
        steps([*[0.0] * 11, 1e-9]),
        steps([0.0] * 12, gradient=0.0),  # satisfied: nothing is left to learn
        steps([0.0] * 12, update=0.0),
        steps([0.0] * 12, gradient=None),
        steps([None] * 12),
        steps([5e6] * 12),  # the change of the loss is below its rounding
    ],
)
def test_a_loss_that_changes_or_could_not_change_is_silent(taken):
    assert value(taken) == []
