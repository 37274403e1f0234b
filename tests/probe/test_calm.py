"""Steps that are only counted, where following every one is over the budget."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from tests.probe.watched import watched
from whygrad.model import Deed
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


def gan(order, clears_first=False):
    torch.manual_seed(0)
    models = [nn.Linear(2, 2), nn.Linear(2, 1)]
    optimizers = [torch.optim.SGD(model.parameters(), lr=1e-3) for model in models]
    for _ in range(STEPS):
        if clears_first:
            for optimizer in optimizers:
                optimizer.zero_grad()
        fake = models[0](torch.randn(4, 2))
        for which in order:
            if not clears_first:
                optimizers[which].zero_grad()
            models[1](fake if which == 0 else fake.detach()).square().mean().backward()
            optimizers[which].step()


@pytest.mark.usefixtures("over_budget")
@pytest.mark.parametrize("clears_first", [False, True])
@pytest.mark.parametrize("order", [(1, 0), (0, 1), (1, 1, 0)])
def test_rounds_of_optimizers_that_take_turns_are_whole(tmp_path, order, clears_first, monkeypatch):
    seen = looks(monkeypatch)
    evidence = watched(tmp_path, lambda: gan(order, clears_first))
    assert len(seen) < len(order) * STEPS * 2 / 3
    deeds = {round_.id: {h.deed for h in evidence.happenings if h.round == round_.id} for round_ in evidence.rounds}
    assert all({Deed.CLEAR, Deed.BACKWARD, Deed.STEP} <= found for found in deeds.values()) or order == (1, 1, 0)
    for optimizer in evidence.optimizers:
        followed = sum(round_.count for round_ in evidence.rounds if round_.optimizer == optimizer.id)
        assert followed > 5
    assert [optimizer.steps for optimizer in evidence.optimizers] == [order.count(0) * STEPS, order.count(1) * STEPS]
    assert all(parameter.overwritten == 0 for parameter in evidence.parameters)


@pytest.mark.usefixtures("over_budget")
def test_what_goes_on_otherwise_pauses_the_calm(tmp_path, monkeypatch):
    def program():
        model = nn.Linear(2, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(STEPS):
            optimizer.zero_grad()
            out = model(torch.ones(1, 2)).sum()
            torch.autograd.backward([out, 2 * out])
            optimizer.step()

    seen = looks(monkeypatch)
    evidence = watched(tmp_path, program)
    assert len(seen) > STEPS / 2
    happened = {round_.id: [h.deed for h in evidence.happenings if h.round == round_.id] for round_ in evidence.rounds}
    assert set(map(tuple, happened.values())) == {(Deed.CLEAR, Deed.BACKWARD, Deed.STEP)}


@pytest.mark.usefixtures("over_budget")
def test_a_rate_that_ends_at_zero_was_not_zero_all_along(tmp_path):
    def program():
        model = nn.Linear(2, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        decay = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.0, STEPS - 1)
        for _ in range(STEPS):
            optimizer.zero_grad()
            model(torch.ones(1, 2)).sum().backward()
            optimizer.step()
            decay.step()

    evidence = watched(tmp_path, program)
    assert evidence.optimizers[0].zero_rate_steps <= 1
    assert evidence.optimizers[0].scheduler_steps == STEPS
    assert evidence.groups[0].zero_rate_steps <= 1
    assert evidence.groups[0].rises == 0


@pytest.mark.usefixtures("over_budget")
def test_an_optimizer_that_is_made_meanwhile_is_followed(tmp_path):
    def program():
        model = nn.Linear(2, 1)
        for _ in range(3):
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)  # in the memory of the one before, most likely
            for _ in range(STEPS):
                optimizer.zero_grad()
                model(torch.ones(1, 2)).sum().backward()
                optimizer.step()
            del optimizer

    evidence = watched(tmp_path, program)
    assert [optimizer.steps for optimizer in evidence.optimizers] == [STEPS] * 3
    assert [optimizer.zero_grads for optimizer in evidence.optimizers] == [STEPS] * 3


@pytest.mark.usefixtures("over_budget")
def test_weights_that_are_swapped_and_put_back_meanwhile_are_not_overwritten(tmp_path):
    def program():
        model = nn.Linear(2, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for step in range(4 * STEPS):
            if step % 30 == 29:
                own = {name: value.clone() for name, value in model.state_dict().items()}
                model.load_state_dict({name: value / 2 for name, value in own.items()})
                model.load_state_dict(own)
            optimizer.zero_grad()
            model(torch.randn(3, 2)).square().mean().backward()
            optimizer.step()

    evidence = watched(tmp_path, program)
    assert all(parameter.compared > 0 for parameter in evidence.parameters)
    assert all(parameter.overwritten == 0 for parameter in evidence.parameters)


@pytest.mark.usefixtures("over_budget")
def test_a_step_with_no_closure_by_name_is_a_plain_one(tmp_path, monkeypatch):
    def program():
        model = nn.Linear(2, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for step in range(STEPS):
            optimizer.zero_grad()
            model(torch.ones(1, 2)).sum().backward()
            optimizer.step(None) if step % 2 else optimizer.step(closure=None)

    seen = looks(monkeypatch)
    watched(tmp_path, program)
    assert len(seen) < STEPS / 2


@pytest.mark.usefixtures("over_budget")
def test_a_root_of_zero_is_found_meanwhile(tmp_path):
    def program():
        model = nn.Linear(2, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
        for step in range(STEPS):
            x = torch.ones(4, 2)
            optimizer.zero_grad()
            out = model(x)
            loss = (out - (out.detach() if step == 30 else 1.0)).square().sum().sqrt()
            loss.backward()
            optimizer.step()

    evidence = watched(tmp_path, program)
    (event, *_) = evidence.events_of("nonfinite")
    assert event.detail["side"] == "backward"
    assert event.place.code.startswith("loss =")
    assert event.first_step <= 31


def test_a_program_within_its_budget_is_followed_throughout(tmp_path, monkeypatch):
    seen = looks(monkeypatch)
    watched(tmp_path, fit)
    assert len(seen) == STEPS
