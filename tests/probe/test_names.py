"""Which tensors are tracked, under which names."""

import copy
from dataclasses import dataclass

import torch
from torch import nn

from tests.probe.watched import by_name, watched
from whygrad.probe.lookups import MAX_HOLDERS
from whygrad.probe.session import Session, SessionOptions

X = torch.ones(4, 3)


def fit(model, parameters=None, steps=2):
    optimizer = torch.optim.SGD(parameters or model.parameters(), lr=0.1)
    for _ in range(steps):
        optimizer.zero_grad()
        model(X).sum().backward()
        optimizer.step()
    return model, optimizer


def names(tmp_path, program):
    return by_name(watched(tmp_path, program))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(3, 3)
        self.b = nn.Linear(3, 3)

    def forward(self, x):
        return self.b(self.a(x))


def test_one_model_needs_no_prefix(tmp_path):
    def program():
        model = Net()
        return fit(model)

    found = names(tmp_path, program)

    assert list(found) == ["a.weight", "a.bias", "b.weight", "b.bias"]
    assert found["a.weight"].root == "model"
    assert found["a.weight"].module == "a"
    assert found["a.weight"].module_type == "Linear"
    assert found["a.weight"].made_at.code == "self.a = nn.Linear(3, 3)"
    assert found["a.weight"].order < found["b.weight"].order


def test_tied_weights_are_one_parameter_with_two_names(tmp_path):
    def program():
        model = Net()
        model.b.weight = model.a.weight
        return fit(model)

    found = names(tmp_path, program)

    assert found["a.weight"].aliases == ("b.weight",)
    assert "b.weight" not in found


def test_wrapper_prefixes_are_left_out(tmp_path):
    def program():
        model = nn.DataParallel(Net())
        return fit(model)

    assert set(names(tmp_path, program)) == {"a.weight", "a.bias", "b.weight", "b.bias"}


def test_a_copied_model_is_found_without_having_been_made(tmp_path):
    original = Net()

    def program():
        student = copy.deepcopy(original)
        return fit(student)

    assert set(names(tmp_path, program)) == {"a.weight", "a.bias", "b.weight", "b.bias"}


def test_a_model_on_an_attribute_of_self_is_named_by_it(tmp_path):
    class Trainer:
        def __init__(self):
            self.net, self.critic = Net(), nn.Linear(3, 1)

        def run(self):
            optimizer = torch.optim.SGD([*self.net.parameters(), *self.critic.parameters()], lr=0.1)
            self.critic(self.net(X)).sum().backward()
            optimizer.step()

    def program():
        trainer = Trainer()
        trainer.run()
        return trainer

    assert {"net.a.weight", "critic.weight"} <= set(names(tmp_path, program))


def test_layers_in_a_list_are_unregistered_and_named_as_if_they_were_not(tmp_path):
    class Listed(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = []
            for _ in range(2):
                self.layers.append(nn.Linear(3, 3))
            self.out = nn.Linear(3, 1)

        def forward(self, x):
            for layer in self.layers:
                x = layer(x)
            return self.out(x)

    def program():
        model = Listed()
        return fit(model)

    weight = names(tmp_path, program)["layers.1.weight"]

    assert (weight.registered, weight.held_in, weight.optimizers) == (False, "list", ())
    assert weight.assigned_at.code == "self.layers.append(nn.Linear(3, 3))"
    assert weight.reached == 2
    assert weight.gradient_steps == 2


def test_parameters_in_a_dict_and_tensors_on_attributes_are_unregistered(tmp_path):
    class Odd(nn.Module):
        def __init__(self):
            super().__init__()
            self.out = nn.Linear(3, 1)
            self.gains = {"x": nn.Parameter(torch.ones(3))}
            self.shift = torch.zeros(3, requires_grad=True)

        def forward(self, x):
            return self.out(x * self.gains["x"] + self.shift)

    def program():
        model = Odd()
        return fit(model)

    found = names(tmp_path, program)

    assert (found["gains.x"].held_in, found["shift"].held_in) == ("dict", "attribute")
    assert found["shift"].assigned_at.code == "self.shift = torch.zeros(3, requires_grad=True)"


def test_layers_on_a_plain_object_are_unregistered(tmp_path):
    @dataclass
    class Bag:
        layer: nn.Module

    class Helper:
        def __init__(self):
            self.layer = nn.Linear(3, 3)

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.helper = Helper()
            self.out = nn.Linear(3, 1)

        def forward(self, x):
            return self.out(self.helper.layer(x))

    def program():
        model = Model()
        return fit(model)

    assert names(tmp_path, program)["helper.layer.weight"].registered is False


def test_a_parameter_replaced_after_the_optimizer_was_made_is_stale(tmp_path):
    def program():
        model = Net()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        model.b = nn.Linear(3, 3)
        for _ in range(2):
            model(X).sum().backward()
            optimizer.step()
        return model, optimizer

    evidence = watched(tmp_path, program)

    stale = [p for p in evidence.parameters if p.stale]
    assert len(stale) == 2
    assert all(p.optimizers == (0,) and p.gradient_steps == 0 for p in stale)
    new = by_name(evidence)["b.weight"]
    assert (new.stale, new.optimizers, new.gradient_steps) == (False, (), 2)


def test_uses_and_freezes_are_traced(tmp_path):
    class Partly(Net):
        def forward(self, x):
            return self.a(x)

    def program():
        model = Partly()
        model.a.bias.requires_grad = False
        return fit(model)

    found = names(tmp_path, program)

    assert found["a.weight"].uses == 2
    assert found["a.weight"].used_at.code == "return self.a(x)"
    assert found["b.weight"].uses == 0
    assert found["b.weight"].reached == 0
    assert found["a.bias"].frozen_at.code == "model.a.bias.requires_grad = False"
    assert found["a.bias"].frozen_steps == 2


def test_modules_and_initial_values_have_their_lines(tmp_path):
    def program():
        model = nn.Sequential(
            nn.Linear(3, 3),
            nn.ReLU(),
        )
        nn.init.constant_(model[0].weight, 0.5)
        return fit(model)

    evidence = watched(tmp_path, program)

    found = by_name(evidence)
    assert found["0.weight"].written_at.code == "nn.init.constant_(model[0].weight, 0.5)"
    assert found["0.bias"].written_at == found["0.bias"].made_at
    assert {m.type: m.made_at.code for m in evidence.modules}["ReLU"] == "nn.ReLU(),"


def test_parameters_that_torch_swaps_stay_tracked(tmp_path):
    def program():
        model = Net()
        fit(model)
        torch.__future__.set_swap_module_params_on_conversion(True)
        try:
            model.zero_grad()
            model.to(torch.float64)
        finally:
            torch.__future__.set_swap_module_params_on_conversion(False)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        model(X.double()).sum().backward()
        optimizer.step()
        return model

    evidence = watched(tmp_path, program)

    assert evidence.info.raised is None
    weight = by_name(evidence)["a.weight"]
    assert weight.gradient_steps == 3
    assert weight.optimizers == (0, 1)


def test_inputs_that_require_grad_do_not_pile_up(tmp_path):
    def program():
        model = Net()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(6):
            x = torch.ones(4, 3, requires_grad=True)
            model(x).sum().backward()
            optimizer.step()
        return model

    assert len(watched(tmp_path, program).parameters) <= 5  # ids are reused: at most one input looks lasting


class Reverse(nn.Module):
    def forward(self, x):
        return x

    def backward(self, gradient):
        return -gradient


class Trains(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin, self.reverse = nn.Linear(3, 1), Reverse()

    def forward(self, x):
        return self.reverse(self.lin(x))

    def backward(self, loss):
        loss.backward()
        return loss


def test_a_module_with_a_method_backward_is_noted_and_a_training_method_is_not(tmp_path):
    def program():
        model = Trains()
        for _ in range(2):
            model.backward(model(X).sum())
        return model

    evidence = watched(tmp_path, program)

    (event,) = evidence.events_of("module_backward")
    assert event.subject == "reverse"
    assert event.place.code == "def backward(self, gradient):"


def test_a_function_that_uses_its_locals_finds_them_whole(tmp_path):
    def program():
        model, rate = Net(), 0.1
        optimizer = torch.optim.SGD(model.parameters(), lr=rate)
        for _ in range(2):
            seen = locals()  # the dict that the frame keeps
            optimizer.zero_grad()
            model(X).sum().backward()
            optimizer.step()
            assert seen["rate"] == 0.1
            assert seen["model"] is model
        return model

    assert set(names(tmp_path, program)) == {"a.weight", "a.bias", "b.weight", "b.bias"}


def test_a_deep_copy_that_its_own_method_trains_has_its_names(tmp_path):
    class Estimator:
        def __init__(self):
            self.net = Net()

        def fit(self):
            return fit(self.net)

    def program():
        first = Estimator()
        second = copy.deepcopy(first)
        return first, second, second.fit()

    trained = [p for p in names(tmp_path, program).values() if p.optimizers]

    assert [p.name for p in trained] == ["a.weight", "a.bias", "b.weight", "b.bias"]
    assert not any(p.stale for p in trained)


def test_optimizers_made_for_every_round_do_not_pile_up(tmp_path):
    session = Session(SessionOptions(tmp_path, "train.py"))
    session.start()
    model = Net()
    for _ in range(200):
        fit(model, steps=1)
    session.flush()

    assert len(session.optimizers.alive()) <= 1
    assert len(session.optimizers) == 200
    assert all(len(entry.optimizers) <= MAX_HOLDERS + 1 for entry in session.parameters.alive())
    session.finish()


def test_a_layer_made_anew_in_each_forward_is_one_module(tmp_path):
    class Gate(nn.Module):
        def __init__(self):
            super().__init__()
            self.a = nn.Linear(3, 3)

        def forward(self, x):
            return nn.ReLU()(self.a(x))

    def program():
        model = Gate()
        return fit(model, steps=6)

    evidence = watched(tmp_path, program)

    (relu,) = [m for m in evidence.modules if m.type == "ReLU"]
    assert relu.calls == 6
    assert [o.calls for o in evidence.outputs if o.module == relu.id] == [6]
