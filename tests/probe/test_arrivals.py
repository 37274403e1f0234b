from __future__ import annotations

import pytest
import torch

from whygrad.model import Role, Step
from whygrad.probe.arrivals import Arrivals
from whygrad.probe.guard import Guard
from whygrad.stats.kernel import Measured


class Backlog:
    def __init__(self):
        self.got = []

    def add(self, step, role, ids, matrix, histograms=None):
        assert histograms is None
        self.got.append((step, role, list(ids), matrix[0, 0].item()))

    def add_step(self, step):
        self.got.append(step.id)


class DeviceError(Exception):
    pass


class Late:
    """Statistics that arrive when they are told to."""

    refused = {}  # noqa: RUF012

    def __init__(self, owner, number, *, ready=False, seconds=0.0, broken=False):
        self.owner, self.number, self.ready, self.seconds, self.broken = owner, number, ready, seconds, broken

    def is_ready(self):
        return self.ready

    def read(self):
        if self.broken:
            raise DeviceError
        self.owner.excess_s += self.seconds
        return Measured(torch.full((1, 8), float(self.number), dtype=torch.float64), None, {})


class Accelerators:
    def __init__(self):
        self.excess_s, self.sent = 0.0, 0

    def send(self):
        self.sent += 1


def step(number):
    return Step(id=number, optimizer=0, time_s=0.0, backwards=1, loss=None, learning_rates=(), recorded=True)


@pytest.fixture
def arrivals():
    return Arrivals(Backlog(), Guard(), Accelerators())


def test_what_is_there_is_passed_on_at_once(arrivals):
    arrivals.add(0, Role.WEIGHT, [4], Late(arrivals.accelerators, 1, ready=True))
    arrivals.add_step(step(0))
    assert arrivals.backlog.got == [(0, Role.WEIGHT, [4], 1.0), 0]


def test_a_step_waits_for_what_was_measured_in_it_and_the_steps_after_it_keep_their_order(arrivals):
    first, second = Late(arrivals.accelerators, 1), Late(arrivals.accelerators, 2, ready=True)
    arrivals.add(0, Role.WEIGHT, [4], first)
    arrivals.add_step(step(0))
    arrivals.add(1, Role.WEIGHT, [4], second)
    arrivals.add_step(step(1))
    assert arrivals.backlog.got == []
    first.ready = True
    arrivals.add_step(step(2))
    assert arrivals.backlog.got == [(0, Role.WEIGHT, [4], 1.0), 0, (1, Role.WEIGHT, [4], 2.0), 1, 2]


def test_each_step_sends_what_was_launched_in_it(arrivals):
    for number in range(3):
        arrivals.add_step(step(number))
    assert arrivals.accelerators.sent == 3


def test_at_the_end_everything_is_read_whether_it_is_there_or_not(arrivals):
    arrivals.add(0, Role.WEIGHT, [4], Late(arrivals.accelerators, 1))
    arrivals.add_step(step(0))
    arrivals.finish()
    assert arrivals.backlog.got == [(0, Role.WEIGHT, [4], 1.0), 0]


def test_a_device_that_fails_takes_no_step_with_it(arrivals):
    arrivals.add(0, Role.WEIGHT, [4], Late(arrivals.accelerators, 1, broken=True))
    arrivals.add_step(step(0))
    arrivals.add_step(step(1))
    with pytest.raises(DeviceError):
        arrivals.finish()
    assert arrivals.backlog.got == [0, 1]


def test_what_the_device_took_is_part_of_the_cost(arrivals):
    arrivals.add(0, Role.WEIGHT, [4], Late(arrivals.accelerators, 1, ready=True, seconds=2.5))
    assert arrivals.guard.own_s == 2.5
