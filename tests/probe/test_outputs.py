"""What modules return and the gradient that comes back to it."""

import math
from dataclasses import dataclass

import pytest
import torch
from torch import nn

from tests.probe.watched import watched
from whygrad.model import Role

X = torch.arange(12.0).reshape(4, 3)


def trained(tmp_path, model, loss_of=lambda out: out.sum(), steps=1):
    def program():
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(steps):
            optimizer.zero_grad()
            loss_of(model(X)).backward()
            optimizer.step()
        return model

    evidence = watched(tmp_path, program)
    return evidence, {o.name: o for o in evidence.outputs}


@dataclass
class Result:
    logits: torch.Tensor
    hidden: tuple


class ModelOutput(dict):  # as in transformers: a dict with attributes
    pass


@pytest.mark.parametrize(
    ("pack", "first", "paths"),
    [
        (lambda a, b: (a, b), lambda out: out[0], ["[0]", "[1]"]),
        (lambda a, b: {"a": a, "b": [b]}, lambda out: out["a"], ["['a']", "['b'][0]"]),
        (lambda a, b: Result(a, (b,)), lambda out: out.logits, [".logits", ".hidden[0]"]),
        (lambda a, b: ModelOutput(a=a, b=b), lambda out: out["a"], ["['a']", "['b']"]),
    ],
)
def test_tensors_are_found_in_structures(tmp_path, pack, first, paths):
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.lin = nn.Linear(3, 2)

        def forward(self, x):
            h = self.lin(x)
            return pack(h * 2, h * 3)

    evidence, outputs = trained(tmp_path, Model(), lambda out: first(out).sum())

    assert set(outputs) == {"lin", *("Model" + path for path in paths)}
    used, unused = (outputs["Model" + path] for path in paths)
    assert (used.gradient_calls, unused.gradient_calls) == (1, 0)
    gradient = evidence.total(Role.OUTPUT_GRADIENT, used.id).statistics
    assert (gradient.count, gradient.sum) == (8, 8)
    assert evidence.total(Role.OUTPUT_GRADIENT, unused.id) is None


def test_an_in_place_activation_behind_keeps_its_inputs_gradient(tmp_path):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 5), nn.ReLU(inplace=True), nn.Linear(5, 1))

    evidence, outputs = trained(tmp_path, model)

    expected = model[2].weight  # after one step, so only the pattern of zeros can be compared
    assert outputs["0"].gradient_calls == outputs["1"].gradient_calls == 1
    before = evidence.total(Role.OUTPUT_GRADIENT, outputs["0"].id).statistics
    after = evidence.total(Role.OUTPUT_GRADIENT, outputs["1"].id).statistics
    assert before.zeros > 0
    assert after.zeros == 0
    assert after.count == 4 * expected.shape[1]


def test_a_module_called_twice_adds_up(tmp_path):
    class Twice(nn.Module):
        def __init__(self):
            super().__init__()
            self.lin = nn.Linear(3, 3)

        def forward(self, x):
            return self.lin(self.lin(x))

    evidence, outputs = trained(tmp_path, Twice())

    assert outputs["lin"].calls == 2
    assert evidence.total(Role.OUTPUT, outputs["lin"].id).statistics.count == 24
    assert evidence.total(Role.OUTPUT, outputs["lin"].id).steps == 1


def test_a_container_that_returns_its_childs_output_adds_no_row(tmp_path):
    model = nn.Sequential(nn.Linear(3, 3), nn.Identity())

    _, outputs = trained(tmp_path, model)

    assert set(outputs) == {"0"}


def test_a_view_written_in_place_counts_as_unknown_not_as_no_gradient(tmp_path):
    class Views(nn.Module):
        def forward(self, x):
            return x[:, :2]

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.lin, self.view = nn.Linear(3, 3), Views()

        def forward(self, x):
            h = self.lin(x)
            self.view(h)
            h.mul_(2)
            return h

    _, outputs = trained(tmp_path, Model())

    assert outputs["view"].gradient_calls == 0
    assert outputs["view"].view_written


def test_forwards_without_grad_are_not_outputs(tmp_path):
    model = nn.Linear(3, 1)

    def loss_of(out):
        with torch.no_grad():
            model(X)
        return out.sum()

    evidence, outputs = trained(tmp_path, model, loss_of)

    assert outputs["Linear"].calls == 1
    assert evidence.info.forwards == 1


@pytest.mark.parametrize("reentrant", [True, False])
def test_a_checkpointed_module_is_measured_once_per_step(tmp_path, reentrant):
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.block = nn.Linear(3, 3), nn.Linear(3, 3)

        def forward(self, x):
            return torch.utils.checkpoint.checkpoint(self.block, self.first(x), use_reentrant=reentrant)

    evidence, outputs = trained(tmp_path, Model(), steps=3)

    assert outputs["block"].gradient_calls == 3
    assert evidence.total(Role.OUTPUT_GRADIENT, outputs["block"].id).statistics.count == 3 * 12


def test_output_statistics_are_those_of_the_output(tmp_path):
    torch.manual_seed(1)
    model = nn.Linear(3, 2)
    expected = model(X).detach()

    evidence, outputs = trained(tmp_path, model)

    statistics = evidence.total(Role.OUTPUT, outputs["Linear"].id).statistics
    assert math.isclose(statistics.mean, expected.mean().item(), rel_tol=1e-5)
    assert math.isclose(statistics.std, expected.std().item(), rel_tol=1e-5)


def test_complex_outputs_are_left_out(tmp_path):
    class Fourier(nn.Module):
        def forward(self, x):
            return torch.fft.fft(x)

    model = nn.Sequential(nn.Linear(3, 4), Fourier())

    _, outputs = trained(tmp_path, model, lambda out: out.abs().sum())

    assert set(outputs) == {"0"}
