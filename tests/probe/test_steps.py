"""What counts as a step, and what belongs to it."""

import contextlib
import math

import pytest
import torch
from torch import nn

from tests.probe.watched import by_name, watched
from whygrad.model import Role

X = torch.ones(4, 3)


def test_one_optimizer_step_is_one_step(tmp_path):
    def program():
        model = nn.Linear(3, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(4):
            optimizer.zero_grad()
            model(X).sum().backward()
            optimizer.step()
        return model

    evidence = watched(tmp_path, program)

    assert [(s.id, s.optimizer, s.backwards) for s in evidence.steps] == [(n, 0, 1) for n in range(4)]
    assert evidence.optimizers[0].steps == 4
    assert evidence.optimizers[0].zero_grads == 4
    assert evidence.optimizers[0].name == "optimizer"


def test_accumulated_backward_passes_belong_to_one_step(tmp_path):
    def program():
        model = nn.Linear(3, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for i in range(8):
            (model(X).sum() / 4).backward()
            if i % 4 == 3:
                optimizer.step()
                optimizer.zero_grad()
        return model

    evidence = watched(tmp_path, program)

    assert [s.backwards for s in evidence.steps] == [4, 4]


def test_two_optimizers_take_turns_and_record_their_own_parameters(tmp_path):
    def program():
        generator, critic = nn.Linear(3, 3), nn.Linear(3, 1)
        first = torch.optim.SGD(critic.parameters(), lr=0.1)
        second = torch.optim.SGD(generator.parameters(), lr=0.1)
        for _ in range(3):
            first.zero_grad()
            critic(generator(X).detach()).sum().backward()
            first.step()
            second.zero_grad()
            critic(generator(X)).sum().backward()
            second.step()
        return generator, critic

    evidence = watched(tmp_path, program)

    assert [s.optimizer for s in evidence.steps] == [0, 1, 0, 1, 0, 1]
    names = by_name(evidence)
    assert set(names) == {"generator.weight", "generator.bias", "critic.weight", "critic.bias"}
    at_first = evidence.matrices.read(0, Role.GRADIENT)
    at_second = evidence.matrices.read(1, Role.GRADIENT)
    assert set(at_first) == {names["critic.weight"].id, names["critic.bias"].id}
    assert set(at_second) == {names["generator.weight"].id, names["generator.bias"].id}


def test_a_closure_is_read_after_the_step(tmp_path):
    def program():
        model = nn.Linear(3, 1)
        optimizer = torch.optim.LBFGS(model.parameters(), max_iter=3)

        def closure():
            optimizer.zero_grad()
            loss = model(X).square().sum()
            loss.backward()
            return loss

        for _ in range(2):
            optimizer.step(closure)
        return model

    evidence = watched(tmp_path, program)

    assert len(evidence.steps) == 2
    assert all(p.gradient_steps == 2 for p in evidence.parameters)


def test_without_an_optimizer_each_backward_is_a_step(tmp_path):
    def program():
        weight = torch.ones(3, requires_grad=True)
        for _ in range(3):
            (X * weight).sum().backward()
            with torch.no_grad():
                weight -= 0.1 * weight.grad
            weight.grad = None
        return weight

    evidence = watched(tmp_path, program)

    assert [s.optimizer for s in evidence.steps] == [None, None, None]
    weight = by_name(evidence)["weight"]
    assert weight.gradient_steps == 3
    assert weight.changed_outside == 2
    assert weight.held_in == "variable"
    update = evidence.total(Role.UPDATE, weight.id)
    assert update is not None
    assert math.isclose(update.statistics.max_abs, 0.4, rel_tol=1e-6)


def test_a_step_that_calls_its_base_class_counts_once(tmp_path):
    class Twice(torch.optim.SGD):
        def step(self, closure=None):
            for group in self.param_groups:
                group["lr"] *= 0.5
            return super().step(closure)

    def program():
        model = nn.Linear(3, 1)
        plain = torch.optim.SGD(model.parameters(), lr=1.0)
        optimizer = Twice(model.parameters(), lr=1.0)
        for _ in range(2):
            model(X).sum().backward()
            optimizer.step()
        return model, plain

    evidence = watched(tmp_path, program)

    assert [s.learning_rates for s in evidence.steps] == [(0.5,), (0.25,)]
    assert evidence.optimizers[1].type == "Twice"


def test_a_skipped_scaler_step_is_counted(tmp_path):
    def program():
        model = nn.Linear(3, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        scaler = torch.amp.GradScaler("cpu", init_scale=2.0**120)
        for _ in range(3):
            optimizer.zero_grad()
            scaler.scale(model(X).square().sum() * 1e10).backward()
            scaler.step(optimizer)
            scaler.update()
        return model

    evidence = watched(tmp_path, program)

    assert evidence.steps == ()
    assert evidence.optimizers[0].skipped == 3


def test_statistics_are_those_of_the_gradient_the_optimizer_uses(tmp_path):
    seen = {}

    def program():
        torch.manual_seed(0)
        model = nn.Linear(3, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        model(torch.randn(5, 3)).square().sum().backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        seen["gradient"], seen["weight"] = model.weight.grad.clone(), model.weight.detach().clone()
        optimizer.step()
        seen["after"] = model.weight.detach().clone()
        return model

    evidence = watched(tmp_path, program)

    weight = by_name(evidence)["weight"].id
    for role, tensor in (
        (Role.GRADIENT, seen["gradient"]),
        (Role.WEIGHT, seen["weight"]),
        (Role.UPDATE, seen["after"] - seen["weight"]),
    ):
        statistics = evidence.matrices.read(0, role)[weight]
        assert math.isclose(statistics.l2, tensor.norm().item(), rel_tol=1e-6), role
        assert math.isclose(statistics.mean, tensor.mean().item(), rel_tol=1e-5, abs_tol=1e-9), role
        assert math.isclose(statistics.std, tensor.std().item(), rel_tol=1e-5), role
    (step,) = evidence.steps
    everything = evidence.matrices.read(0, Role.GRADIENT).values()
    assert math.isclose(step.gradient_l2, math.hypot(*(s.l2 for s in everything)), rel_tol=1e-9)
    assert step.weight_l2 > step.update_l2 > 0
    assert sum(evidence.matrices.histogram(0, Role.GRADIENT)[weight]) == 6


def test_recording_thins_out_but_steps_and_gradients_are_still_counted(tmp_path):
    def program():
        model = nn.Linear(3, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        for _ in range(20):
            optimizer.zero_grad()
            model(X).sum().backward()
            optimizer.step()
        return model

    evidence = watched(tmp_path, program, every=5)

    assert len(evidence.steps) == 20
    recorded = [s.id for s in evidence.steps if s.recorded]
    assert len(recorded) == 4
    assert evidence.matrices.steps(Role.GRADIENT) == tuple(recorded)
    assert by_name(evidence)["weight"].gradient_steps == 20


def test_schedulers_are_attached_to_their_optimizer(tmp_path):
    def program():
        model = nn.Linear(3, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
        scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda n: float(n > 2))
        for _ in range(4):
            model(X).sum().backward()
            optimizer.step()
            scheduler.step()
        return model

    optimizer = watched(tmp_path, program).optimizers[0]

    assert (optimizer.scheduler, optimizer.scheduler_steps) == ("LambdaLR", 4)
    assert optimizer.zero_rate_steps == 3
    assert optimizer.scheduler_stepped_at.code == "scheduler.step()"


def test_a_step_call_that_is_never_reached_is_found_in_the_source(tmp_path):
    def program():
        model = nn.Linear(3, 1)
        lazy = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(3):
            loss = model(X).sum()
            loss.backward()
            if loss.item() > 1e9:
                lazy.step()
        return model

    evidence = watched(tmp_path, program)

    assert evidence.optimizers[0].steps == 0
    (event,) = evidence.events_of("unreached_step_call")
    assert event.subject == "lazy"
    assert event.place.code == "lazy.step()"
    assert all(p.optimizers == (0,) for p in evidence.parameters)


def test_a_step_that_raises_once_does_not_end_the_counting(tmp_path):
    class Moody(torch.optim.SGD):
        calls = 0

        def step(self, closure=None):
            Moody.calls += 1
            if Moody.calls == 1:
                raise MemoryError
            return super().step(closure)

    def program():
        model = nn.Linear(3, 1)
        optimizer = Moody(model.parameters(), lr=0.1)
        for _ in range(5):
            optimizer.zero_grad()
            model(X).sum().backward()
            with contextlib.suppress(MemoryError):
                optimizer.step()
        return model

    assert watched(tmp_path, program).info.steps == 4


def test_a_loop_that_only_evaluates_is_not_watched_for_ever(tmp_path, monkeypatch):
    monkeypatch.setattr("whygrad.probe.windows.MAX_WINDOW_S", 0.01)

    def program():
        model = nn.Linear(3, 1)
        for _ in range(300):
            model(X)
        return model

    evidence = watched(tmp_path, program)

    assert evidence.info.forwards < 300
    assert any("were not watched throughout" in note for note in evidence.info.notes)


class Signs(torch.optim.Optimizer):
    """An optimizer of another package: only the base class is torch's."""

    def __init__(self, params, rate):
        super().__init__(params, {"rate": rate})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for parameter in group["params"]:
                parameter.add_(parameter.grad.sign(), alpha=-group["rate"])


@pytest.mark.parametrize(
    "make",
    [
        lambda p: torch.optim.Adam(p, lr=0.01, fused=True),
        lambda p: torch.optim.Adam(p, lr=0.01, foreach=True),
        lambda p: torch.optim.SGD(p, lr=0.01, foreach=False),
        lambda p: Signs(p, 0.01),
    ],
    ids=["fused", "foreach", "one by one", "of another package"],
)
def test_every_kind_of_optimizer_is_followed(tmp_path, make):
    def program():
        model = nn.Linear(3, 1)
        optimizer = make(model.parameters())
        for _ in range(4):
            optimizer.zero_grad()
            (model(torch.ones(4, 3)) - 1).pow(2).mean().backward()
            optimizer.step()
        return model

    evidence = watched(tmp_path, program)

    assert [o.steps for o in evidence.optimizers] == [4]
    updates = [evidence.series(Role.UPDATE, p.id) for p in evidence.parameters]
    assert [len(series) for series in updates] == [4, 4]
    assert all(statistics.rms == pytest.approx(0.01, rel=0.9) for series in updates for _, statistics in series)
    assert not any(p.overwritten or p.changed_outside for p in evidence.parameters)


def test_a_call_of_autograd_grad_counts_once_also_in_traced_steps(tmp_path):
    def program():
        weight = torch.ones(3, requires_grad=True)
        for _ in range(12):
            torch.autograd.grad(weight.square().sum(), weight)

    assert watched(tmp_path, program).info.grad_calls == 12


def test_functional_updates_are_steps(tmp_path):
    def program():
        model = nn.Linear(3, 1)
        weights = {name: p.detach().clone().requires_grad_() for name, p in model.named_parameters()}
        for _ in range(6):
            loss = (torch.func.functional_call(model, weights, (torch.ones(4, 3),)) - 1).pow(2).mean()
            loss.backward()
            weights = {name: (w - 0.1 * w.grad).detach().requires_grad_() for name, w in weights.items()}
        return model

    assert watched(tmp_path, program).info.steps == 6
