"""Steps that are only counted, where following every one is over the budget."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from tests.probe.watched import watched
from whygrad.probe import passed_steps
from whygrad.probe.budget import Budget
from whygrad.probe.loop import Loop

STEPS = 60


@pytest.fixture
def over_budget(monkeypatch):
    """A program whose every step counts as too expensive to follow, from the sixth on."""
    monkeypatch.setattr(passed_steps, "CALM_AFTER", 5)
    monkeypatch.setattr(Budget, "is_over", lambda *_: True)
    monkeypatch.setattr(Budget, "record_next", lambda *_, steps_done, **__: steps_done < 3)


def fit(steps=STEPS, freeze_at=None, break_at=None, accumulate=1, other_at=None):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(steps):
        if step == freeze_at:
            model[0].weight.requires_grad_(False)
            model[0].weight.grad = None
        if step == other_at:
            torch.optim.Adam(model.parameters()).step()
        optimizer.zero_grad()
        for _ in range(accumulate):
            x = torch.randn(5, 3) * (float("nan") if step == break_at else 1.0)
            model(x).square().mean().backward()
        optimizer.step()
    return [p.detach().clone() for p in model.parameters()]


def looks(monkeypatch):
    seen = []
    plain = Loop.before_step
    monkeypatch.setattr(Loop, "before_step", lambda *args: (seen.append(1), plain(*args))[1])
    return seen


@pytest.mark.usefixtures("over_budget")
def test_most_steps_are_only_counted_and_the_counts_are_those_of_all_steps(tmp_path, monkeypatch):
    seen = looks(monkeypatch)
    evidence = watched(tmp_path, lambda: fit(accumulate=2))
    assert len(seen) < STEPS / 2
    assert evidence.info.steps == STEPS
    assert evidence.info.backwards == sum(event.count for event in evidence.events_of("backward")) == 2 * STEPS
    for parameter in evidence.parameters:
        assert (parameter.steps, parameter.gradient_steps, parameter.last_gradient_step) == (STEPS, STEPS, STEPS - 1)
        assert parameter.changed_outside == 0
    assert evidence.optimizers[0].zero_grads == evidence.optimizers[0].steps == STEPS
    assert evidence.groups[0].steps == STEPS


@pytest.mark.usefixtures("over_budget")
def test_of_the_steps_passed_over_the_last_one_is_in_the_file(tmp_path):
    evidence = watched(tmp_path, lambda: fit(accumulate=2))
    numbers = [step.id for step in evidence.steps]
    assert numbers == sorted(set(numbers))
    assert len(numbers) < STEPS
    assert numbers[-1] == STEPS - 1
    assert {step.backwards for step in evidence.steps} == {2}
    assert all(step.loss is not None for step in evidence.steps)


@pytest.mark.usefixtures("over_budget")
def test_the_program_computes_the_same(tmp_path):
    kept = []
    watched(tmp_path, lambda: kept.append(fit()))
    assert all(map(torch.equal, kept[0], fit()))


@pytest.mark.usefixtures("over_budget")
def test_a_round_is_whole_or_not_counted(tmp_path):
    evidence = watched(tmp_path, fit)
    plain = watched(tmp_path / "plain", lambda: fit(4))
    assert {r.optimizer for r in evidence.rounds} == {0}
    kinds = lambda found: {h.deed for h in found.happenings}
    assert kinds(evidence) == kinds(plain)


@pytest.mark.usefixtures("over_budget")
def test_a_gradient_that_disappears_is_seen_when_the_loop_is_followed_again(tmp_path):
    evidence = watched(tmp_path, lambda: fit(freeze_at=20))
    lost = evidence.parameters[0]
    assert 20 <= lost.gradient_steps < STEPS
    assert lost.frozen_steps == STEPS - lost.gradient_steps


@pytest.mark.usefixtures("over_budget")
def test_a_loss_that_is_nan_is_followed_at_once(tmp_path):
    evidence = watched(tmp_path, lambda: fit(break_at=27))
    assert [event.first_step for event in evidence.events_of("nonfinite_loss")] == [27]


@pytest.mark.usefixtures("over_budget")
def test_optimizers_that_take_turns_are_counted_apart(tmp_path, monkeypatch):
    def program():
        models = [nn.Linear(2, 1), nn.Linear(2, 1)]
        optimizers = [torch.optim.SGD(model.parameters(), lr=0.1) for model in models]
        for step in range(STEPS):
            which = step % 3 == 0
            optimizers[which].zero_grad()
            models[which](torch.ones(1, 2)).sum().backward()
            optimizers[which].step()

    seen = looks(monkeypatch)
    evidence = watched(tmp_path, program)
    assert len(seen) < STEPS / 2
    assert [optimizer.steps for optimizer in evidence.optimizers] == [STEPS * 2 // 3, STEPS // 3]
    assert [optimizer.zero_grads for optimizer in evidence.optimizers] == [STEPS * 2 // 3, STEPS // 3]
    assert {p.steps for p in evidence.parameters} == {STEPS * 2 // 3, STEPS // 3}


@pytest.mark.usefixtures("over_budget")
def test_a_step_of_another_optimizer_is_followed(tmp_path):
    evidence = watched(tmp_path, lambda: fit(other_at=27))
    assert [optimizer.steps for optimizer in evidence.optimizers] == [STEPS, 1]


@pytest.mark.usefixtures("over_budget")
def test_a_program_sees_no_call_of_ours_in_its_own_mode(tmp_path):
    class Count(TorchDispatchMode):
        calls = 0

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            Count.calls += 1
            return func(*args, **(kwargs or {}))

    def program():
        with Count():
            fit()

    program()
    plain, Count.calls = Count.calls, 0
    watched(tmp_path, program)
    assert Count.calls == plain


def test_a_program_within_its_budget_is_followed_throughout(tmp_path, monkeypatch):
    seen = looks(monkeypatch)
    watched(tmp_path, fit)
    assert len(seen) == STEPS
