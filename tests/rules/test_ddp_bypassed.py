"""A wrapped model that was trained without its wrapper, and parted, is placed at the call that went past it."""

from tests.rules.builders import line
from tests.rules.rank_builders import STEPS, apart, local, ranks, same
from whygrad.rules import all_rules

AVERAGED = [0.5] * STEPS
OWN = [0.7] * STEPS


def found(evidence):
    return list(all_rules()["ddp-bypassed"].check_ranks(evidence))


def test_it_is_placed_at_the_call_that_went_past_the_wrapper():
    past = {"replicas": [local("outside", calls=0, outside_at=line(19), outside_calls=30)]}

    (finding,) = found(ranks((same(), AVERAGED, past), (apart(), OWN, past)))

    assert finding.place == line(19)
    assert finding.also == (line(22), line(12))
    assert "averaged the gradients in 0 of 10 steps" in finding.message
    assert "train.py:12" in finding.fix


def test_where_no_call_was_seen_it_is_placed_at_the_backward_pass():
    past = {"replicas": [local("outside", calls=0)]}

    (finding,) = found(ranks((same(), AVERAGED, past), (apart(), OWN, past)))

    assert finding.place == line(22)


def test_gradients_that_the_program_averages_itself_are_silence():
    past = {"replicas": [local("outside", calls=0, outside_at=line(19))]}

    assert found(ranks((same(), AVERAGED, past), (same(), AVERAGED, past))) == []


def test_other_causes_are_another_rules():
    kept = {"replicas": [local("no-sync")]}

    assert found(ranks((same(), AVERAGED, kept), (apart(), OWN, kept))) == []
