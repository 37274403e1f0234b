"""A learning rate is reported if it is stuck at 0 for most of the run and at its end; schedules that work are not."""

import math

import pytest

from tests.rules.builders import check, evidence, line, optimizer, parameter, steps, updates
from whygrad.model import Group, Severity

SLUG = "zero-learning-rate"
WEIGHT = parameter("weight", 0)
SCHEDULED = {
    "scheduler": "LambdaLR",
    "scheduler_made_at": line(21),
    "scheduler_stepped_at": line(31),
    "scheduler_steps": 1,
}


def run(rates, constructed=(0.1,), parameters=(WEIGHT,), matrices=None, groups=(), **fields):
    each = [rate if isinstance(rate, tuple) else (rate,) for rate in rates]
    extra = {"groups": groups} if matrices is None else {"groups": groups, "matrices": matrices}
    given = optimizer(learning_rates=constructed, **{"steps": len(each), **fields})
    return check(SLUG, evidence(parameters, (given,), steps=steps(each), **extra))


def cosine(number, total):
    return 0.05 * (1 + math.cos(math.pi * number / total))


def test_a_schedule_that_stays_at_zero_is_an_error_at_the_line_that_steps_it():
    (finding,) = run([0.0] * 20, **SCHEDULED)

    assert finding.severity is Severity.ERROR
    assert finding.tensors == ("weight",)
    assert finding.place == line(31)
    assert finding.also == (line(21), line(20))
    assert finding.message == ("The learning rate of `optimizer` was 0 in 20 of 20 steps: `weight` stands still")
    assert "it made 1 step in 20 steps" in finding.fix
    assert finding.evidence["largest_rate"] == 0.1


def test_a_schedule_that_is_never_stepped_is_placed_where_it_is_made():
    (finding,) = run([0.0] * 20, **{**SCHEDULED, "scheduler_stepped_at": None, "scheduler_steps": 0})

    assert finding.place == line(21)


def test_an_optimizer_made_with_rate_zero_is_placed_where_it_is_made_whatever_a_scheduler_does_with_it():
    (finding,) = run([0.0] * 20, constructed=(0.0,), **SCHEDULED)

    assert finding.place == line(20)
    assert "above 0" in finding.fix


def test_a_rate_that_is_multiplied_away_is_an_error_without_any_scheduler():
    (finding,) = run([0.1 * 0.3**k for k in range(1, 60)])

    assert finding.place == line(20)
    assert "at most 1e-09" in finding.message
    assert "no scheduler" in finding.fix


def test_a_decay_that_reaches_zero_before_half_of_the_run_is_an_error():
    assert len(run([0.1] * 9 + [0.0] * 11)) == 1
    assert run([0.1] * 10 + [0.0] * 10) == []


def test_a_schedule_that_is_at_zero_for_the_last_fifth_of_the_run_is_a_warning():
    (finding,) = run([0.1 * (1 - k / 40) for k in range(40)] + [0.0] * 10, **SCHEDULED)

    assert finding.severity is Severity.WARNING
    assert finding.place == line(31)
    assert "was 0 in the last 10 of 50 steps: `weight` stood still in them" in finding.message
    assert run([0.1 * (1 - k / 50) for k in range(50)] + [0.0] * 7, **SCHEDULED) == []


def test_a_warm_up_that_stays_at_zero_for_a_whole_epoch_is_a_warning():
    (finding,) = run([0.0] * 15 + [0.02] * 15 + [0.04] * 15, **SCHEDULED)

    assert "was 0 in the first 15 of 45 steps" in finding.message
    assert finding.evidence["stuck_at_the_start"] == 15
    assert run([0.0] * 15 + [0.1] * 30, **SCHEDULED) == []  # frozen, then let go


def test_the_line_that_sets_the_rate_by_hand_is_named():
    by_hand = Group(0, 0, 0, (0,), rate_set_at=line(44))

    (finding,) = run([0.1 * 0.3**k for k in range(1, 60)], groups=(by_hand,))

    assert finding.place == line(44)


@pytest.mark.parametrize(
    "rates",
    [
        [min(1.0, k / 10) * 0.1 for k in range(20)],  # a warm-up begins at 0
        [cosine(k, 19) for k in range(20)],  # a cosine ends at 0
        [cosine(k % 10, 9) for k in range(200)],  # warm restarts pass 0 again and again
        [0.1 * 0.5 ** (k // 10) for k in range(200)],  # halved on plateaus
        [0.0] * 12 + [0.1] * 8,  # frozen at first, then let go
        [0.0] * 7,  # too short to tell
        [math.nan] * 20,  # a rate on an accelerator is not read
    ],
)
def test_schedules_that_work_are_silent(rates):
    assert run(rates) == []


def test_a_group_made_with_rate_zero_beside_another_is_frozen_on_purpose():
    (finding,) = run([(0.0, 0.1)] * 20, constructed=(0.0, 0.1))

    assert finding.severity is Severity.INFO


def test_a_group_that_a_schedule_stops_is_an_error_that_names_what_stands_still():
    held = (parameter("body", 0), parameter("head", 1))

    (finding,) = run(
        [(0.0, 0.1)] * 20, constructed=(0.1, 0.1), parameters=held, matrices=updates([0.0] * 20, [0.2] * 20)
    )

    assert finding.severity is Severity.ERROR
    assert finding.tensors == ("body",)
    assert finding.evidence["stuck_groups"] == 1


def test_without_recorded_updates_all_that_the_optimizer_holds_is_named():
    held = (parameter("body", 0), parameter("head", 1))

    (finding,) = run([(0.0, 0.1)] * 20, constructed=(0.1, 0.1), parameters=held)

    assert finding.tensors == ("body", "head")


def test_a_group_that_joins_later_is_judged_by_its_own_steps():
    late = [(0.1,)] * 20 + [(0.1, 0.0)] * 20

    (finding,) = run(late)
    assert finding.evidence["steps"] == 19  # its first one is taken for the rate it was made with

    assert run([(0.1,)] * 20 + [(0.1, 0.0)] * 5) == []


def test_an_optimizer_that_holds_nothing_known_is_still_named():
    (finding,) = run([0.0] * 20, parameters=())

    assert finding.tensors == ()
    assert "what it holds stands still" in finding.message


def test_other_optimizers_steps_do_not_count():
    mine = optimizer(0, learning_rates=(0.1,))

    assert check(SLUG, evidence((), (mine,), steps=steps([(0.0,)] * 20, optimizer=1))) == []
