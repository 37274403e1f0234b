"""What is used without an effect on the loss is reported where its result is dropped."""

import pytest

from tests.rules.builders import line, never_stepped, optimizer
from tests.rules.path_builders import cut, found, lost, stopped
from whygrad.model import PathEnd, Severity

SLUG = "unreached-parameter"


def ignored(name, id, **fields):
    return lost(name, id, **{"path": PathEnd.IGNORED, "ends_at": line(19), "ends_with": "linear", **fields})


def test_a_head_whose_output_is_dropped_is_a_warning_at_its_last_use():
    (finding,) = found(SLUG, [ignored("aux.weight", 1), ignored("aux.bias", 2)])

    assert finding.severity is Severity.WARNING
    assert finding.tensors == ("aux.weight", "aux.bias")
    assert finding.place == line(19)
    assert finding.also == (line(2),)
    assert finding.message == (
        "`aux.weight` (+1) are used, but nothing computed from them (last: `linear`) reaches the loss: no gradient in "
        "10 steps"
    )
    assert finding.evidence["uses"] == 3


def test_what_no_optimizer_holds_is_an_info():
    (finding,) = found(SLUG, [ignored("aux.weight", 1, optimizers=())])

    assert finding.severity is Severity.INFO


def test_results_that_are_dropped_on_different_lines_are_different_findings():
    assert len(found(SLUG, [ignored("a", 1), ignored("b", 2, ends_at=line(23))])) == 2


@pytest.mark.parametrize(
    "fields",
    [
        {"path": PathEnd.CUT},
        {"path": PathEnd.UNUSED},
        {"path": None},
        {"reached": 1},  # layers that take turns
        {"gradient_steps": 1},
        {"walked": 2},
        {"registered": False},
        {"requires_grad": False},
        {"stale": True},
        {"changed_outside": 2},
        {"root": "other", "optimizers": ()},  # nothing of its model is trained
    ],
)
def test_near_misses_are_silent(fields):
    assert found(SLUG, [ignored("aux.weight", 1, **fields)]) == []


def test_a_cut_on_the_way_is_another_rules_case():
    assert found("detached", [ignored("aux.weight", 1)], [cut(1)]) == []


def test_the_last_use_stands_in_where_the_end_is_not_known():
    (finding,) = found(SLUG, [ignored("aux.weight", 1, ends_at=None, ends_with="", used_at=line(21))])

    assert finding.place == line(21)
    assert "(last:" not in finding.message


def test_ddp_that_waits_for_the_gradient_makes_one_pass_enough():
    assert len(found(SLUG, [ignored("aux.weight", 1, walked=1)], info=stopped("ddp-unused"))) == 1


def test_an_optimizer_of_its_own_makes_it_an_error():
    given = [ignored("critic.weight", 1, optimizers=(1,), root="critic")]
    own = optimizer(1, name="critic_optimizer")

    (finding,) = found(SLUG, given, optimizers=(optimizer(), own))

    assert finding.severity is Severity.ERROR
    assert found(SLUG, given, optimizers=(optimizer(), never_stepped(1))) == []


@pytest.mark.parametrize(("tensor", "who"), [("points", "`points`"), ("", "one of the inputs")])
def test_an_input_that_autograd_grad_did_not_find_is_an_error(tensor, who):
    (finding,) = found(SLUG, info=stopped("unused-input", tensor=tensor, made_at=line(7)))

    assert finding.severity is Severity.ERROR
    assert finding.place == line(60)
    assert finding.also == (line(7),)
    assert f"does not depend on {who}, and it raised" in finding.message
