from dataclasses import replace

import pytest

from tests.report.builders import Shown, a_rule, evidence, finding, info, parameter, parameters, place, rules
from whygrad.model import Raised, Severity
from whygrad.report.verdict import findings, headline, judge, verdict_line

ERROR, WARNING, INFO = Severity
MODEL = ("0.weight", "0.bias", "2.weight", "2.bias")


def line(*found, **fields):
    return verdict_line(Shown((evidence(*MODEL, **fields),), tuple(found)))


# The line


def test_healthy_run_says_how_many_parameters_learn_and_over_how_many_steps():
    assert "nothing found: 4 of 4 parameters learn (10 steps)" == line()


def test_errors_are_counted_with_the_parameters_they_name():
    assert "1 error: 2 of 4 parameters do not learn" == line(finding(tensors=["0.weight", "0.bias"]))


def test_warnings_say_badly():
    assert "2 warnings: 1 of 4 parameters learn badly" == (
        line(finding("a", WARNING, ["0.weight"]), finding("b", WARNING, ["0.weight"]))
    )


def test_a_parameter_named_twice_counts_once_and_as_what_is_worse():
    found = (finding("a", ERROR, ["0.weight", "0.bias"]), finding("b", WARNING, ["0.bias", "2.bias"]))

    assert "1 error, 1 warning: 2 of 4 parameters do not learn, 1 learn badly" == line(*found)


def test_consequences_count():
    effect = finding("b", ERROR, ["2.weight"])

    assert "1 error: 2 of 4 parameters do not learn" == line(finding("a", ERROR, ["0.weight"], consequences=(effect,)))


def test_intermediates_are_no_parameters():
    assert "1 error" == line(finding("intermediate-grad", ERROR, ["maps"]))


def test_unregistered_parameters_that_are_found_join_the_total():
    hidden = parameter("layers.0.weight", 9, registered=False)
    run = Shown(
        (evidence(given=(*parameters(*MODEL), hidden)),), (finding("unregistered", tensors=["layers.0.weight"]),)
    )

    assert "1 error: 1 of 5 parameters do not learn" == verdict_line(run)


def test_alias_counts_as_its_parameter():
    tied = (parameter("embed.weight", aliases=("head.weight",)), parameter("mid.weight", 1))
    run = Shown((evidence(given=tied),), (finding(tensors=["head.weight", "embed.weight"]),))

    assert "1 error: 1 of 2 parameters do not learn" == verdict_line(run)


def test_only_infos_are_nothing_wrong():
    assert "nothing wrong found, 1 info: 4 of 4 parameters learn (10 steps)" == line(finding("a", INFO, ["0.weight"]))


def test_infos_beside_errors_are_counted_and_change_nothing_else():
    assert "1 error, 2 infos: 1 of 4 parameters do not learn" == (
        line(finding("a", ERROR, ["0.weight"]), finding("b", INFO, ["2.weight"]), finding("c", INFO))
    )


@pytest.mark.parametrize(
    ("field", "learning"),
    [
        ({"gradient_steps": 0}, 0),
        ({"optimizers": ()}, 0),
        ({"optimizers": (), "changed_outside": 9}, 1),
        ({}, 1),
    ],
)
def test_a_parameter_learns_if_it_gets_a_gradient_and_something_moves_it(field, learning):
    run = Shown((evidence(given=(parameter("a"), parameter("b", 1, **field))),))

    assert verdict_line(run).startswith(f"nothing found: {1 + learning} of 2 parameters learn")


def test_program_without_optimizer_steps_by_hand():
    run = Shown((evidence(given=(parameter("w", registered=False, optimizers=()),)),))

    assert "nothing found: 1 of 1 parameters learn (10 steps)" == verdict_line(run)


def test_backward_without_a_step_is_not_called_learning():
    assert "nothing found: 4 of 4 parameters get a gradient, but no step was seen (0 steps)" == line(steps=0)


def test_nothing_trained_is_one_honest_line():
    assert "no training was observed: no model ran with grad enabled, no backward pass, no optimizer step" == line(
        steps=0, backwards=0
    )
    assert "no training was observed: 2 forward passes, but no backward pass and no optimizer step" == (
        line(steps=0, backwards=0, forwards=2)
    )


def test_gradients_by_autograd_grad_are_training():
    assert "no training" not in line(steps=0, backwards=0, grad_calls=3)


def test_untrained_run_with_a_finding_tells_the_finding():
    assert "1 error: 4 of 4 parameters do not learn" == (
        line(finding("no-backward", tensors=MODEL), steps=0, backwards=0, forwards=3)
    )


def test_exception_that_ended_the_program_is_named():
    raised = Raised("RuntimeError", "element 0 of tensors does not require grad")

    assert line(steps=1, raised=raised).endswith("; the program raised RuntimeError after 1 step")
    assert line(steps=0, backwards=0, raised=raised).endswith(
        "no optimizer step; the program raised RuntimeError after 0 steps"
    )


def test_run_without_parameters():
    assert "nothing found (3 steps)" == verdict_line(Shown((evidence(steps=3),)))


def test_headline_leaves_the_steps_to_its_reader():
    assert "nothing found: 4 of 4 parameters learn" == headline(Shown((evidence(*MODEL),)))


# Judging


def test_no_rules_find_nothing():
    judgement = judge((evidence(*MODEL),), {})

    assert ((), ()) == (judgement.findings, judgement.notes)


def test_rule_that_raises_is_a_note_and_the_others_still_speak():
    def broken(_):
        yield finding("broken", tensors=["0.weight"])
        msg = "no such total"
        raise KeyError(msg)

    judgement = judge((evidence(*MODEL),), rules(a_rule("broken", check=broken), a_rule("fine", finding("fine"))))

    assert {"broken", "fine"} == {f.rule for f in judgement.findings}
    assert ("rule `broken` failed: KeyError: 'no such total'",) == judgement.notes


def test_findings_are_folded_and_ordered():
    cause = finding("detached", tensors=["0.weight"])
    effect = finding("zero-gradient", tensors=["0.weight"])

    (top,) = findings(
        evidence(*MODEL), rules(a_rule("zero-gradient", effect), a_rule("detached", cause, explains=["zero-gradient"]))
    )

    assert replace(cause, consequences=(effect,)) == top


def test_silenced_findings_are_dropped():
    silenced = finding("detached", place=place(code="x.detach()  # whygrad: ignore[detached]"))

    assert () == findings(evidence(*MODEL), rules(a_rule("detached", silenced)))


def test_what_every_rank_shows_is_said_once():
    ranks = [evidence(*MODEL, rank=rank, world_size=2) for rank in range(2)]

    judgement = judge(ranks, rules(a_rule("a", finding("a", tensors=["0.weight"], place=place()))))

    assert [{"steps": 10}] == [f.evidence for f in judgement.findings]


def test_what_only_another_rank_shows_names_the_rank():
    def check(evidence):
        return [finding("a", tensors=["0.weight"])] if evidence.info.rank == 1 else []

    judgement = judge([evidence(*MODEL, rank=r, world_size=2) for r in range(2)], rules(a_rule("a", check=check)))

    assert [{"steps": 10, "rank": 1}] == [f.evidence for f in judgement.findings]


def test_notes_of_all_ranks_are_said_once():
    first = evidence(notes=("a compiled region was not seen",), world_size=2)
    second = evidence(notes=("a compiled region was not seen", "no histogram"), rank=1, world_size=2)

    assert ("a compiled region was not seen", "rank 1: no histogram") == judge((first, second), {}).notes


def test_run_that_did_not_end_and_ranks_that_are_missing_are_notes():
    notes = judge((evidence(ended=False, world_size=4, rank=0),), {}).notes

    assert (
        "rank 0 did not end, or still runs: 10 steps were written up to its last flush",
        "only 1 rank of 4 left a run file",
    ) == notes
    assert info(ended=False).world_size == 1
    assert judge((evidence(ended=False),), {}).notes[0].startswith("the run did not end")


def test_a_parameter_that_waits_for_a_gradient_is_not_passed_over_in_silence():
    run = Shown((evidence(given=(parameter("a"), parameter("b", 1, gradient_steps=0))),))

    assert "1 parameter that an optimizer holds never got a gradient" in verdict_line(run)
