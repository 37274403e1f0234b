"""The program's own hooks on parameters, intermediates and modules are noted with the line that sets them."""

import functools

import pytest
import torch
from torch import nn

from tests.probe.watched import by_name, watched

X = torch.ones(4, 3)


def run(tmp_path, prepare, **options):
    def program():
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        loss_of = prepare(model) or (lambda: model(X).sum())
        for _ in range(4):
            optimizer.zero_grad()
            loss_of().backward()
            optimizer.step()
        return model

    return watched(tmp_path, program, **options)


def halve(scale, grad):
    return grad * scale


def on_parameter(model):
    model[0].weight.register_hook(lambda grad: grad * 0)  # set here


def after_accumulation(model):
    def clear(parameter):
        parameter.grad = None

    model[0].weight.register_post_accumulate_grad_hook(clear)  # set here


@pytest.mark.parametrize("prepare", [on_parameter, after_accumulation])
def test_a_hook_on_a_parameter_is_noted_where_it_is_set(tmp_path, prepare):
    evidence = run(tmp_path, prepare)

    (event,) = evidence.events_of("gradient_hook")
    assert event.subject == str(by_name(evidence)["0.weight"].id)
    assert "set here" in event.place.code


def in_a_partial(model):
    model[0].weight.register_hook(functools.partial(halve, 0.5))  # set here


def as_an_object(model):
    model[0].weight.register_hook(HOOK)


class Halving:
    def __call__(self, grad):  # defined here
        return grad * 0.5


HOOK = Halving()


def test_a_partial_and_an_object_that_can_be_called_are_hooks_too(tmp_path):
    (partial,) = run(tmp_path / "a", in_a_partial).events_of("gradient_hook")
    (called,) = run(tmp_path / "b", as_an_object).events_of("gradient_hook")

    assert "set here" in partial.place.code
    assert "defined here" in called.place.code  # several lines of this file set hooks


def test_a_hook_on_an_intermediate_knows_the_parameters_behind_it(tmp_path):
    def prepare(model):
        def loss():
            hidden = model[1](model[0](X))
            hidden.register_hook(lambda grad: grad * 0)  # set on the hidden layer
            return model[2](hidden).sum()

        return loss

    evidence = run(tmp_path, prepare)

    (event,) = evidence.events_of("tensor_hook")
    parameters = by_name(evidence)
    assert "set on the hidden layer" in event.place.code
    assert set(event.detail["parameters"]) <= {parameters["0.weight"].id, parameters["0.bias"].id}


def test_backward_hooks_of_modules_are_noted_with_their_side(tmp_path):
    def prepare(model):
        model[2].register_full_backward_pre_hook(lambda _module, _grad: None)

    (event,) = run(tmp_path, prepare).events_of("module_hook")

    assert (event.subject, event.detail["before"], event.detail["root"]) == ("2", True, "model")


def test_hooks_of_libraries_and_hooks_that_the_probe_sets_are_not_noted(tmp_path):
    evidence = run(tmp_path, lambda _model: None, every=1)

    kinds = {event.kind for event in evidence.events}
    assert kinds.isdisjoint({"gradient_hook", "tensor_hook", "module_hook"})
