"""Writes between steps: counted where they change what the next step finds, with the line that wrote."""

import copy

import pytest
import torch
from torch import nn

from tests.probe.watched import by_name, watched

X = torch.ones(4, 3)
STEPS = 8


def fit(model, optimizer, between, steps=STEPS):
    for step in range(steps):
        optimizer.zero_grad()
        model(X).sum().backward()
        optimizer.step()
        between(step)


def run(tmp_path, between_of, **options):
    def program():
        torch.manual_seed(0)
        model = nn.Linear(3, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        fit(model, optimizer, between_of(model, optimizer))
        return model, optimizer

    return watched(tmp_path, program, **options)


def test_steps_that_nothing_comes_between_are_compared_and_left(tmp_path):
    weight = by_name(run(tmp_path, lambda *_: lambda _step: None))["weight"]

    assert (weight.compared, weight.overwritten, weight.restored, weight.replaced, weight.undone) == (7, 0, 0, 0, 0.0)


def restored(model, _optimizer):
    start = [p.detach().clone() for p in model.parameters()]

    def between(_step):
        with torch.no_grad():
            for p, s in zip(model.parameters(), start, strict=True):
                p.copy_(s)  # written here

    return between


def through_data(model, _optimizer):
    start = [p.detach().clone() for p in model.parameters()]

    def between(_step):
        for p, s in zip(model.parameters(), start, strict=True):
            p.data.copy_(s)  # written here

    return between


def exchanged(model, _optimizer):
    start = [p.detach().clone() for p in model.parameters()]

    def between(_step):
        for p, s in zip(model.parameters(), start, strict=True):
            p.data = s.clone()  # written here

    return between


@pytest.mark.parametrize("between", [restored, through_data, exchanged])
def test_a_write_that_takes_the_step_back_is_counted_with_its_line(tmp_path, between):
    evidence = run(tmp_path, between)

    weight = by_name(evidence)["weight"]
    assert (weight.compared, weight.overwritten, weight.restored) == (7, 7, 7)
    assert weight.undone == pytest.approx(7)
    places = [event.place for event in evidence.events_of("weight_written")]
    assert any(place is not None and "written here" in place.code for place in places)


def test_a_load_is_counted_and_so_is_one_of_the_models_own_tensors(tmp_path):
    def between_of(model, _optimizer):
        start = copy.deepcopy(model.state_dict())

        def between(step):
            backup = model.state_dict()
            if step % 2:
                model.load_state_dict(start)
                model.load_state_dict(backup)

        return between

    evidence = run(tmp_path, between_of)

    weight = by_name(evidence)["weight"]
    assert (weight.loads, weight.overwritten, weight.restored) == (8, 3, 0)
    assert weight.undone == pytest.approx(3)
    assert [(e.kind, e.subject, e.count) for e in evidence.events if e.kind.endswith("weights_loaded")] == [
        ("weights_loaded", "model", 4),
        ("own_weights_loaded", "model", 4),
    ]


def test_weights_that_are_swapped_out_and_in_again_are_not_overwritten(tmp_path):
    def between_of(model, _optimizer):
        other = {name: torch.zeros_like(value) for name, value in model.state_dict().items()}

        def between(_step):
            backup = copy.deepcopy(model.state_dict())
            model.load_state_dict(other)
            model.load_state_dict(backup)

        return between

    weight = by_name(run(tmp_path, between_of))["weight"]

    assert (weight.compared, weight.overwritten, weight.loads) == (7, 0, 16)


def test_a_load_between_steps_that_are_not_recorded_is_seen(tmp_path):
    def between_of(model, _optimizer):
        start = copy.deepcopy(model.state_dict())
        return lambda step: model.load_state_dict(start) if step == 4 else None

    weight = by_name(run(tmp_path, between_of, every=100))["weight"]

    assert weight.overwritten == 1


def test_an_optimizer_that_is_put_back_is_noted(tmp_path):
    def between_of(_model, optimizer):
        state = copy.deepcopy(optimizer.state_dict())
        return lambda _step: optimizer.load_state_dict(state)

    (event,) = run(tmp_path, between_of).events_of("optimizer_loaded")

    assert (event.subject, event.count) == ("optimizer", STEPS)


def test_half_precision_weights_know_how_much_of_them_never_moved(tmp_path):
    def program():
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(3, 8), nn.LayerNorm(8), nn.Linear(8, 1)).to(torch.bfloat16)
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
        for _ in range(STEPS):
            optimizer.zero_grad()
            model(torch.randn(4, 3, dtype=torch.bfloat16)).sum().backward()
            optimizer.step()
        return model

    parameters = by_name(watched(tmp_path, program))

    assert parameters["1.weight"].unmoved == 1.0
    assert parameters["1.bias"].unmoved == 0.0


def test_a_tensor_that_cannot_be_looked_at_is_passed_over(tmp_path):
    def program():
        model = nn.Embedding(5, 2, sparse=True)
        optimizer = torch.optim.SparseAdam(model.parameters(), lr=0.1)
        weight = nn.Parameter(torch.randn(3, dtype=torch.complex64))
        other = torch.optim.SGD([weight], lr=0.1)
        for _ in range(4):
            (model(torch.tensor([1, 2])).sum() + weight.abs().sum()).backward()
            optimizer.step()
            other.step()
        return model, weight

    compared = {parameter.dtype: parameter.compared for parameter in watched(tmp_path, program).parameters}
    assert compared == {"float32": 3, "complex64": 0}
