"""What is recorded of parameter groups: what they hold, their rates over all steps, and who sets them."""

import math

import pytest
import torch
from torch import nn

from tests.probe.watched import watched

X = torch.ones(4, 3)


def fit(model, optimizer, steps, after=lambda: None):
    for _ in range(steps):
        optimizer.zero_grad()
        model(X).sum().backward()
        optimizer.step()
        after()


def test_a_group_knows_its_parameters_its_settings_and_its_rates(tmp_path):
    def program():
        model = nn.Linear(3, 2)
        groups = [{"params": [model.weight], "weight_decay": 0.1}, {"params": [model.bias], "lr": 0.5}]
        optimizer = torch.optim.AdamW(groups, lr=0.2, eps=1e-6, betas=(0.8, 0.9), weight_decay=0.0)
        scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: step / 4)
        fit(model, optimizer, 4, scheduler.step)
        return model, optimizer

    evidence = watched(tmp_path, program)

    first, second = evidence.groups
    names = {p.id: p.name for p in evidence.parameters}
    assert [[names[number] for number in group.parameters] for group in (first, second)] == [["weight"], ["bias"]]
    assert (first.optimizer, first.position, second.position) == (0, 0, 1)
    assert (first.learning_rate, first.base_learning_rate, second.learning_rate) == (0.2, 0.2, 0.5)
    assert first.last_learning_rate == first.highest_learning_rate == pytest.approx(0.15)
    assert first.first_learning_rate == 0.0
    assert (first.lowest_learning_rate, first.steps, first.zero_rate_steps, first.rises) == (0.0, 4, 1, 3)
    assert (first.weight_decay, second.weight_decay, first.decoupled) == (0.1, 0.0, True)
    assert (first.momentum, first.eps) == (0.8, 1e-6)
    assert first.rate_set_at is None  # a scheduler does it


def test_a_rate_that_is_set_by_hand_has_a_line(tmp_path):
    def program():
        model = nn.Linear(3, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.2, momentum=0.9)

        def halve():
            for group in optimizer.param_groups:
                group["lr"] *= 0.5  # halved here

        fit(model, optimizer, 3, halve)
        return model, optimizer

    (group,) = watched(tmp_path, program).groups

    assert group.rate_set_at is not None
    assert "halved here" in group.rate_set_at.code
    assert (group.momentum, group.decoupled) == (0.9, False)
    assert math.isnan(group.eps)


def test_groups_of_an_optimizer_that_is_gone_are_kept(tmp_path):
    def program():
        model = nn.Linear(3, 2)
        for _ in range(3):
            fit(model, torch.optim.SGD(model.parameters(), lr=0.1), 2)
        return model

    groups = watched(tmp_path, program).groups

    assert [(group.id, group.optimizer, group.steps, len(group.parameters)) for group in groups] == [
        (0, 0, 2, 2),
        (1, 1, 2, 2),
        (2, 2, 2, 2),
    ]
