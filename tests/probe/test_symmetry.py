"""Which parameters have units that are all equal to another one."""

import pytest
import torch
from torch import nn

from tests.probe.watched import by_name, watched


def symmetric(folder, make):
    def program():
        torch.manual_seed(0)
        model = make()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
        for _ in range(8):
            x = torch.randn(32, 4)
            loss = (model(x).squeeze(1) - x[:, 0] * x[:, 1]).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        return model

    evidence = watched(folder, program, every=1)
    names = {parameter.id: name for name, parameter in by_name(evidence).items()}
    return {(names[found.id], found.dimension): found for found in evidence.symmetries}


def network(start):
    def make():
        model = nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 1))
        with torch.no_grad():
            start(model)
        return model

    return make


def all_constant(model):
    for parameter in model.parameters():
        parameter.fill_(0.2)


def repeated(model):
    model[0].weight.copy_(model[0].weight[:3].repeat(2, 1))
    model[0].bias.fill_(0.0)
    model[2].weight.copy_(model[2].weight[:, :3].repeat(1, 2))


def first_constant(model):
    model[0].weight.fill_(0.2)


def head_at_zero(model):
    model[2].weight.fill_(0.0)


def test_a_network_of_constants_is_symmetric_between_its_layers(tmp_path):
    found = symmetric(tmp_path, network(all_constant))

    assert set(found) == {("0.weight", 0), ("2.weight", 1)}
    rows = found["0.weight", 0]
    assert (rows.units, rows.first_step, rows.last_step) == (6, 0, 7)
    assert rows.difference < 1e-6


def test_copies_of_half_of_the_units_are_twins(tmp_path):
    assert set(symmetric(tmp_path, network(repeated))) == {("0.weight", 0), ("2.weight", 1)}


@pytest.mark.parametrize("start", [first_constant, head_at_zero, lambda _: None], ids=["one layer", "zeros", "random"])
def test_what_a_random_neighbour_tells_apart_is_not_symmetric(start, tmp_path):
    assert symmetric(tmp_path, network(start)) == {}
