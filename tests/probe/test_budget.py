"""The budget is a promise: simulated programs, with a clock of their own."""

from __future__ import annotations

import time

import pytest

from whygrad.probe.budget import ADVANCE_S, DENSE_STEPS, FEWEST_STEPS, LONG_ADVANCE_S, Budget
from whygrad.probe.session import Session, SessionOptions
from whygrad.runfile.reader import read_evidence


def simulate(budget, *, seconds, step_s, recorded_s, idle_s=0.0, optimizers=1, pace=1.0, first_s=0.0):
    """Return which steps were recorded, and the (elapsed, own) times after each, of a program of equal steps."""
    elapsed = own = first_s
    recording, recorded, times = True, [], []
    while elapsed < seconds:
        cost = (recorded_s if recording else 0.0) + idle_s
        own += cost
        elapsed += step_s + cost
        recorded.append(recording)
        times.append((elapsed, own))
        recording = budget.record_next(
            steps_done=len(recorded), optimizers=optimizers, own_s=own, elapsed_s=elapsed, pace=pace
        )
    return recorded, times


@pytest.mark.parametrize("step_s", [0.001, 0.05, 1.0])
@pytest.mark.parametrize(("recorded_s", "kept_after_s"), [(0.002, ADVANCE_S), (0.02, ADVANCE_S), (0.3, LONG_ADVANCE_S)])
def test_the_share_is_kept_after_a_minute_or_after_five_where_a_step_is_dear(step_s, recorded_s, kept_after_s):
    recorded, times = simulate(Budget(0.02), seconds=600, step_s=step_s, recorded_s=recorded_s)
    assert all(own <= 0.02 * elapsed + recorded_s for elapsed, own in times if elapsed > kept_after_s)
    assert sum(recorded[DENSE_STEPS:]) > 0


def test_a_short_program_of_cheap_steps_is_recorded_densely():
    recorded, _ = simulate(Budget(0.02), seconds=2.0, step_s=0.001, recorded_s=0.004)
    assert all(recorded[:DENSE_STEPS])


def test_expensive_steps_end_the_dense_start_early():
    recorded, times = simulate(Budget(0.02), seconds=100.0, step_s=0.1, recorded_s=0.5)
    assert 5 < sum(recorded) < 15
    assert times[-1][1] <= 0.02 * LONG_ADVANCE_S + 0.5


def test_what_it_took_to_start_is_saved_after_the_dense_start():
    quick = simulate(Budget(0.02), seconds=600.0, step_s=0.01, recorded_s=0.01)
    slow = Budget(0.02)
    slow.begin(5.0)
    late = simulate(slow, seconds=600.0, step_s=0.01, recorded_s=0.01, first_s=5.0)
    assert sum(late[0][:DENSE_STEPS]) == sum(quick[0][:DENSE_STEPS]) == DENSE_STEPS
    assert sum(quick[0]) - sum(late[0]) == pytest.approx(500, abs=20)
    assert late[1][-1][1] <= 0.02 * late[1][-1][0] + 0.01


def test_where_every_step_costs_too_much_some_are_still_recorded():
    recorded, times = simulate(Budget(0.02), seconds=300, step_s=0.0003, recorded_s=0.003, idle_s=0.0001)
    later = recorded[DENSE_STEPS:]
    assert 0 < sum(later) * 0.003 <= 0.02 * 0.25 * times[-1][0] * 1.1


def test_a_busy_machine_makes_no_program_look_expensive():
    slow = {"seconds": 100.0, "step_s": 0.2, "recorded_s": 0.25}
    assert sum(simulate(Budget(0.02), **slow)[0]) < 60
    assert all(simulate(Budget(0.02), **slow, pace=0.2)[0][:FEWEST_STEPS])


def test_more_overhead_records_more():
    sums = [sum(simulate(Budget(share), seconds=300, step_s=0.01, recorded_s=0.02)[0]) for share in (0.01, 0.05, 0.2)]
    assert sums == sorted(set(sums))


def test_every_nth_round_is_recorded_whatever_it_costs():
    recorded, _ = simulate(Budget(0.02, every=5), seconds=50, step_s=0.1, recorded_s=1.0)
    assert [i for i, each in enumerate(recorded) if each][:4] == [0, 5, 10, 15]
    assert all(simulate(Budget(0.02, every=1), seconds=20, step_s=0.1, recorded_s=1.0)[0])


def test_a_round_holds_a_step_of_each_optimizer():
    recorded, _ = simulate(Budget(0.02), seconds=200, step_s=0.01, recorded_s=0.02, optimizers=2)
    sparse = "".join("x" if each else " " for each in recorded[DENSE_STEPS + 2 :])
    assert {len(run) % 2 for run in sparse.split()[:-1]} == {0}


def test_it_is_over_where_more_was_spent_than_is_allowed():
    budget = Budget(0.02)
    budget.record_next(steps_done=1, optimizers=1, own_s=1.0, elapsed_s=5.0)
    assert not budget.is_over(5.0)
    budget.record_next(steps_done=2, optimizers=1, own_s=6.5, elapsed_s=5.0)
    assert budget.is_over(5.0)
    assert not budget.is_over(330.0)
    assert not Budget(0.02, every=1, _own_s=9.0).is_over(10.0)


def test_what_it_took_to_get_ready_is_our_own_time(tmp_path):
    began = time.perf_counter() - 2.0
    session = Session(SessionOptions(tmp_path, "train.py"))
    session.start()
    session.count_start(began)
    session.finish()
    info = read_evidence(session.path).info
    assert 2.0 <= info.own_s <= info.duration_s
