"""Copies that part for good are found with the cause that the step before shows; everything else is silence."""

from dataclasses import replace

import pytest

from tests.rules.builders import line, module, optimizer, parameter
from tests.rules.rank_builders import STEPS, apart, local, rank, ranks, replica, same, without_wrapper
from whygrad.model import Severity
from whygrad.report.verdict import judge
from whygrad.rules import all_rules

SLUG = "rank-divergence"
AVERAGED = [0.5] * STEPS
OWN = [0.7] * STEPS


def found(evidence):
    return list(all_rules()[SLUG].check_ranks(evidence))


def test_a_last_backward_pass_under_no_sync_is_placed_at_the_line_that_enters_it():
    kept = local("no-sync", no_sync_at=line(20))

    (finding,) = found(ranks((same(), AVERAGED, {"replicas": [kept]}), (apart(), OWN, {"replicas": [kept]})))

    assert finding.severity is Severity.ERROR
    assert finding.tensors == ("layer0.weight",)
    assert finding.place == line(20)
    assert finding.also == (line(22), line(30))
    assert finding.message.startswith("`layer0.weight` differs between 2 ranks from step 1 on: ")
    assert finding.evidence["local_steps"] == STEPS
    assert finding.evidence["gap"] > 0


def test_the_cause_is_taken_from_whichever_rank_stepped_alone():
    of_second = local("no-sync", no_sync_at=line(20))

    (finding,) = found(ranks((same(), AVERAGED, {}), (apart(3), OWN, {"replicas": [of_second]})))

    assert "from step 3 on" in finding.message
    assert "no_sync" in finding.message


def test_a_second_backward_pass_is_placed_at_that_pass():
    twice = local("repeated")

    (finding,) = found(ranks((same(), AVERAGED, {"replicas": [twice]}), (apart(), OWN, {"replicas": [twice]})))

    assert finding.place == line(22)


def test_what_joined_after_wrapping_is_placed_at_the_line_that_wraps():
    late = {"replicas": [replica(parameters=(7,))]}

    (finding,) = found(ranks((same(), AVERAGED, late), (apart(4), OWN, late)))

    assert finding.place == line(12)
    assert "after the model was wrapped" in finding.message


def test_values_that_differ_from_the_start_are_placed_where_they_were_written():
    written = {"parameters": [parameter("layer0.weight", 0, written_at=line(14))]}

    (finding,) = found(ranks((same(), AVERAGED, written), (apart(0), AVERAGED, written)))

    assert finding.place == line(14)
    assert "from the start" in finding.message


def test_equal_gradients_at_different_rates_are_placed_at_the_schedule():
    made = {"optimizers": (optimizer(scheduler_stepped_at=line(40)),)}
    first, second = ranks((same(), AVERAGED, {}), (apart(5), AVERAGED, {"rates": [(0.1,)] * 4 + [(0.05,)] * 6}))
    first = type(first)(**{**vars(first), **made})

    (finding,) = found([first, second])

    assert finding.place == line(40)
    assert "different learning rates" in finding.message


def test_equal_gradients_and_rates_leave_the_update():
    (finding,) = found(ranks((same(), AVERAGED, {}), (apart(5), AVERAGED, {})))

    assert finding.place == line(30)
    assert "the updates are not" in finding.message


def test_gradients_that_were_averaged_and_differ_were_changed():
    (finding,) = found(ranks((same(), AVERAGED, {}), (apart(2), OWN, {})))

    assert "something changed them" in finding.message


def test_a_hook_in_place_of_the_average_makes_it_an_info():
    hooked = {"replicas": [local("no-sync", hook="post_localSGD_hook")]}

    (finding,) = found(ranks((same(), AVERAGED, hooked), (apart(), OWN, hooked)))

    assert finding.severity is Severity.INFO


def test_copies_that_are_equal_are_silent_whatever_the_wrapper_did():
    kept = {"replicas": [local("no-sync")]}

    assert found(ranks((same(), OWN, kept), (same(), AVERAGED, kept))) == []


def test_copies_that_become_equal_again_are_averaged_on_purpose():
    again = [*apart()[:6], same()[6], *apart()[7:]]

    assert found(ranks((same(), OWN, {}), (again, AVERAGED, {}))) == []


def test_rounding_between_ranks_is_no_difference():
    rounded = [value * (1 + 1e-13) for value in same()]

    assert found(ranks((same(), AVERAGED, {}), (rounded, AVERAGED, {}))) == []


def test_one_rank_alone_says_nothing():
    assert found(ranks((same(), OWN, {"replicas": [local("no-sync")]}), (apart(), OWN, {}))[:1]) == []


def test_models_of_which_nothing_is_averaged_are_different_models():
    pipeline = without_wrapper(ranks((same(), OWN, {}), (apart(0), AVERAGED, {})))

    assert found(pipeline) == []


def test_a_model_whose_gradients_are_all_the_same_is_averaged_by_hand():
    model = {"modules": (module("", 5, made_at=line(9)),)}
    first = rank(0, [same(), same()], [AVERAGED, OWN], **model)
    second = rank(1, [apart(0), apart(0)], [AVERAGED, OWN], **model)

    (finding,) = found([first, second])

    assert finding.tensors == ("layer0.weight", "layer1.weight")
    assert finding.place == line(9)


@pytest.mark.parametrize("position", [0, 1])
def test_a_frozen_copy_is_not_compared(position):
    frozen = {"parameters": [parameter("layer0.weight", 0, requires_grad=False)]}
    fields = [{}, {}]
    fields[position] = frozen

    assert found(ranks((same(), AVERAGED, fields[0]), (apart(), OWN, fields[1]))) == []


def test_steps_are_matched_by_optimizer_where_one_rank_recorded_fewer():
    kept = {"replicas": [local("no-sync", no_sync_at=line(20))]}

    (finding,) = found(
        ranks((same(), AVERAGED, kept), (apart(), OWN, {**kept, "recorded": range(0, STEPS, 2)})),
    )

    assert finding.evidence["compared_steps"] == STEPS // 2
    assert finding.evidence["first_step"] == 2


def test_steps_are_matched_by_their_position_where_a_long_run_lacks_some():
    def thinned(lacking, weights, gradients):
        whole = rank(0, [weights], [gradients], replicas=[replica()])
        left = [replace(step, position=step.id) for step in whole.steps if step.id not in lacking]
        return replace(whole, steps=tuple(left))

    equal = [thinned((3, 5), same(), AVERAGED), thinned((4,), same(), AVERAGED)]
    parted = [thinned((3, 5), same(), AVERAGED), thinned((4,), apart(7), OWN)]

    assert found(equal) == []
    (finding,) = found(parted)
    assert "from step 7 on" in finding.message


def test_the_verdict_asks_a_rule_about_ranks_once_with_all_of_them():
    kept = {"replicas": [local("no-sync", no_sync_at=line(20))]}
    both = ranks((same(), AVERAGED, kept), (apart(), OWN, kept))

    found_by_all = judge(both, {SLUG: all_rules()[SLUG]}).findings

    assert [finding.rule for finding in found_by_all] == [SLUG]
    assert "rank" not in found_by_all[0].evidence
