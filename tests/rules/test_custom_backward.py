"""A backward written by hand that gives no gradient is reported, and one that nothing calls."""

import pytest

from tests.rules.builders import event, info, line, module, parameter
from tests.rules.path_builders import cut, found, lost, zeros
from whygrad.model import CutKind, PathEnd, Severity

SLUG = "custom-backward"


def test_a_function_that_returns_none_is_an_error_at_its_backward():
    quantize = cut(1, CutKind.CUSTOM, "Quantize", mode_at=line(14))

    (finding,) = found(SLUG, [lost("encoder.weight", 1)], [quantize])

    assert finding.severity is Severity.ERROR
    assert finding.place == line(14)
    assert finding.also == (line(40),)
    assert finding.message.endswith(
        "`Quantize`, called at train.py:40, passes nothing on in its backward at train.py:14"
    )


def test_the_call_is_the_place_where_the_backward_is_not_known():
    (finding,) = found(SLUG, [lost("encoder.weight", 1)], [cut(1, CutKind.CUSTOM, "")])

    assert finding.place == line(40)
    assert "an autograd.Function, called at train.py:40" in finding.message


def undefined(name, id, **fields):
    none = {"path": PathEnd.UNDEFINED, "reached": 10, "ends_at": line(22), "ends_with": "Round"}
    return lost(name, id, **{**none, **fields})


def test_a_gradient_that_came_back_as_none_is_an_error_although_the_graph_reached():
    (finding,) = found(SLUG, [undefined("a", 1)], [cut(1, CutKind.CUSTOM, "Round")])

    assert finding.tensors == ("a",)
    assert finding.place == line(40)


@pytest.mark.parametrize("fields", [{"gradient_steps": 1}, {"optimizers": ()}, {"changed_outside": 1}])
def test_what_is_not_known_or_not_meant_is_silent(fields):
    assert found(SLUG, [undefined("a", 1)]) == []
    assert found(SLUG, [undefined("a", 1, **fields)], [cut(1, CutKind.CUSTOM, "Round")]) == []


# -- a method of a module ----------------------------------------------------------------------------------------------

MODULES = (module("encoder", 0, order=1), module("critic.reverse", 1, type="Reverse", order=4, made_at=line(33)))


def method(*, backwards=10, **detail):
    calls = event("module_backward", place=line(17), subject="critic.reverse", **detail)
    before, after = parameter("encoder.weight", 1, order=1), parameter("critic.net.weight", 2, order=5)
    return found(SLUG, [before, after], events=(calls,), modules=MODULES, info=info(backwards=backwards))


def test_a_module_with_a_backward_is_a_warning_that_names_what_was_called_before_it():
    (finding,) = method()

    assert finding.severity is Severity.WARNING
    assert finding.tensors == ("encoder.weight",)
    assert finding.place == line(17)
    assert finding.also == (line(33),)
    assert "its `backward` at train.py:17 is never called" in finding.message
    assert finding.fix.startswith("Make `Reverse` a torch.autograd.Function")


def test_a_module_whose_forward_gives_no_gradient_is_an_error():
    calls = event("module_backward", place=line(17), subject="critic.reverse")
    before = parameter("encoder.weight", 1, order=1)

    findings = found(SLUG, [before], events=(calls,), modules=MODULES, totals=zeros(1))

    assert [f.severity for f in findings] == [Severity.ERROR]


def test_the_parameters_are_those_that_the_probe_saw_if_it_did():
    (finding,) = method(tensors=["encoder.bias"])

    assert finding.tensors == ("encoder.bias",)


def test_a_program_that_runs_its_own_backward_is_silent():
    assert method(backwards=0) == []


def test_a_module_that_is_not_known_is_still_named():
    calls = event("module_backward", place=line(17), subject="gone")

    (finding,) = found(SLUG, events=(calls,))

    assert finding.tensors == ()
    assert finding.fix.startswith("Make `gone` a torch.autograd.Function")
