"""Which recorded steps are looked at closely."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn

from tests.probe.watched import watched
from whygrad.probe.closeness import ALARMED, EVERY, FEWEST, FIRST, FIRST_S, MAX_ALARMS, Closeness
from whygrad.probe.nonfinite.watch import NonfiniteWatch


def sparse():
    return Closeness(by_budget=False)


def wanted(closeness, steps, losses=None, own_s=0.0):
    found = []
    for step in range(steps):
        found.append(closeness.wants(own_s))
        if losses is not None:
            closeness.note_loss(losses(step))
    return found


def test_the_first_recorded_steps_are_and_some_of_those_after():
    found = wanted(sparse(), FIRST + 10 * EVERY)
    assert all(found[:FIRST])
    assert 9 <= sum(found[FIRST:]) <= 11


def test_where_the_budget_leaves_few_recorded_steps_more_of_them_are():
    assert sum(wanted(Closeness(), FIRST + 300)) == pytest.approx(FIRST + 100, abs=1)


def test_where_looks_are_dear_fewer_of_the_first_are():
    found = wanted(sparse(), FIRST, own_s=FIRST_S)
    assert all(found[:FEWEST])
    assert sum(found[FEWEST:]) <= 6


def test_of_two_optimizers_that_take_turns_both_are_looked_at():
    found = wanted(Closeness(), FIRST + 20 * EVERY)
    assert {step % 2 for step, close in enumerate(found) if close and step >= FIRST} == {0, 1}


@pytest.mark.parametrize("leap", [1e3, math.inf, math.nan])
def test_a_loss_that_leaves_its_course_brings_close_looks(leap):
    closeness = sparse()
    wanted(closeness, 2 * FIRST, lambda _: 0.5)
    closeness.note_loss(leap)
    assert all(wanted(closeness, ALARMED))


def test_a_loss_that_falls_or_grows_slowly_brings_none():
    slow = sparse()
    plain = wanted(sparse(), 3 * FIRST)
    assert wanted(slow, 3 * FIRST, lambda step: 2.0 * 0.95**step) == plain
    assert wanted(sparse(), 3 * FIRST, lambda step: 1.02**step) == plain


def test_a_loss_that_leaps_for_ever_is_no_alarm_in_the_end():
    closeness = sparse()
    steps = (MAX_ALARMS + 40) * 40
    found = wanted(closeness, steps, lambda step: 1e4 if step % 40 == 39 else 1.0)
    assert sum(found[-20 * EVERY :]) <= 21


def test_calls_are_not_watched_in_a_recorded_step_that_is_not_looked_at_closely(tmp_path, monkeypatch):
    seen = []
    switch = NonfiniteWatch.switch
    monkeypatch.setattr(NonfiniteWatch, "switch", lambda self, *, on: (seen.append(on), switch(self, on=on))[1])

    def fit():
        model = nn.Linear(2, 1)
        optimizer = torch.optim.SGD(model.parameters(), 0.01)
        for _ in range(FIRST + 2 * EVERY):
            optimizer.zero_grad()
            model(torch.ones(3, 2)).square().mean().backward()
            optimizer.step()

    evidence = watched(tmp_path, fit, every=1)
    assert all(step.recorded for step in evidence.steps)
    assert sum(seen) < FIRST + EVERY
