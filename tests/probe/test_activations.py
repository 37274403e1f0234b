"""How flat squashing functions are, and how gradients fall over time."""

import torch
from torch import nn

from tests.probe.watched import watched
from whygrad.model import Role


class Functional(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.inner = nn.Linear(4, 4)
        self.outer = nn.Linear(4, 1)
        nn.init.constant_(self.inner.bias, size)

    def forward(self, x):
        return torch.sigmoid(self.outer(torch.tanh(self.inner(x))))


def train(model, x, steps=6):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(steps):
        loss = model(x).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return model


def activations(folder, make):
    evidence = watched(folder, lambda: train(make(), torch.randn(16, 4)), every=1)
    names = {output.id: output.name for output in evidence.outputs}
    return {(names[found.output], found.function): found for found in evidence.activations}


def test_modules_and_functions_are_seen_where_they_are_flat(tmp_path):
    found = activations(tmp_path, lambda: Functional(50.0))

    assert {function for _, function in found} == {"tanh", "sigmoid"}
    inner = found["inner", "tanh"]
    assert inner.steps == (0, 1, 2, 3, 4, 5)
    assert set(inner.flat) == {1.0}
    assert max(inner.slopes) < 1e-6
    assert inner.place is not None
    assert inner.place.code == "return torch.sigmoid(self.outer(torch.tanh(self.inner(x))))"


def test_a_module_is_one_activation_although_it_calls_a_function(tmp_path):
    found = activations(tmp_path, lambda: nn.Sequential(nn.Linear(4, 4), nn.Sigmoid(), nn.Linear(4, 1)))

    assert list(found) == [("1", "sigmoid")]
    assert min(found["1", "sigmoid"].slopes) > 0.5


def test_many_looks_are_thinned_out(tmp_path):
    model = nn.Sequential(nn.Linear(4, 1), nn.Tanh())
    evidence = watched(tmp_path, lambda: train(model, torch.randn(4, 4), steps=300), every=1)

    (found,) = evidence.activations
    assert 64 <= len(found.steps) <= 193
    assert len(found.steps) == len(found.flat) == len(found.slopes)
    assert found.steps[-1] >= 280  # later steps are looked at now and then


def test_the_gradient_at_the_first_time_step_is_told_from_that_at_the_last(tmp_path):
    class Loop(nn.Module):
        def __init__(self):
            super().__init__()
            self.cell = nn.Linear(4, 4, bias=False)
            nn.init.eye_(self.cell.weight)

        def forward(self, x):
            for _ in range(6):
                x = 0.5 * self.cell(x)
            return x

    evidence = watched(tmp_path, lambda: train(Loop(), torch.ones(2, 4), steps=2), every=1)
    (cell,) = [output for output in evidence.outputs if output.name == "cell"]
    early, late = (evidence.matrices.read(0, role)[cell.id] for role in (Role.EARLY_GRADIENT, Role.LATE_GRADIENT))

    assert abs(early.l2 / late.l2 - 0.5**5) < 1e-6


def test_what_tells_samples_apart_is_measured_without_their_mean(tmp_path):
    model = nn.Sequential(nn.Linear(1, 1, bias=False), nn.Linear(1, 1))
    with torch.no_grad():
        model[0].weight.fill_(2.0)
    x = torch.tensor([[9.0], [11.0]])
    evidence = watched(tmp_path, lambda: train(model, x, steps=1), every=1)
    (first,) = [output for output in evidence.outputs if output.name == "0"]

    assert evidence.matrices.read(0, Role.VARIATION)[first.id].rms == 2.0
