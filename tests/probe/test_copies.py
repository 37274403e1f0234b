"""Copies of models are linked to what they were copied from, and calls without grad are counted for both."""

import copy

import torch
from torch import nn

from tests.probe.watched import watched

X = torch.ones(4, 3)


def fit(model, steps=3):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(steps):
        optimizer.zero_grad()
        model(X).sum().backward()
        optimizer.step()


def evaluate(model):
    with torch.no_grad():
        model(X)


def test_a_copy_knows_its_original_where_it_was_made_and_when(tmp_path):
    def program():
        server = nn.Linear(3, 2)
        for _ in range(2):
            local = copy.deepcopy(server)  # copied here
            fit(local)
            evaluate(server)
        return server

    parameters = watched(tmp_path, program).parameters
    copies = [p for p in parameters if p.copy_of is not None and p.attribute == "weight"]
    originals = {p.copy_of for p in copies}

    assert [p.copied_step for p in copies] == [0, 3]
    assert all(p.copied_at is not None and "copied here" in p.copied_at.code for p in copies)
    assert len(originals) == 1
    (original,) = [p for p in parameters if p.id in originals]
    assert (original.evaluations, original.optimizers, [p.evaluations for p in copies]) == (2, (), [0, 0])


def test_a_model_that_loads_the_state_of_another_is_a_copy_of_it(tmp_path):
    def program():
        server, local = nn.Linear(3, 2), nn.Linear(3, 2)
        local.load_state_dict(server.state_dict())
        fit(local)
        server.eval()
        return server, local

    parameters = watched(tmp_path, program).parameters
    (trained,) = [p for p in parameters if p.attribute == "weight" and p.optimizers]
    (original,) = [p for p in parameters if p.id == trained.copy_of]

    assert (original.attribute, original.evaluations, original.optimizers) == ("weight", 1, ())


def test_states_that_were_cloned_or_are_the_models_own_make_no_copies(tmp_path):
    def program():
        one, other = nn.Linear(3, 2), nn.Linear(3, 2)
        one.load_state_dict(one.state_dict())
        other.load_state_dict({name: value.clone() for name, value in one.state_dict().items()})
        fit(one)
        fit(other)
        return one, other

    assert [p.copy_of for p in watched(tmp_path, program).parameters] == [None] * 4


def test_calls_before_the_first_step_and_in_programs_without_copies_are_not_counted(tmp_path):
    def program():
        model, template = nn.Linear(3, 2), nn.Linear(3, 2)
        evaluate(model)
        fit(model)
        evaluate(model)
        return model, template

    assert {p.evaluations for p in watched(tmp_path, program).parameters} == {0}


def test_the_mode_of_a_model_counts_at_its_last_call_before_a_step(tmp_path):
    def program():
        model = nn.Sequential(nn.Linear(3, 2), nn.Dropout(0.5))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for step in range(6):
            model.eval()  # eval here
            model(X).sum().backward()
            if step < 2:
                model.train()
            model(X).sum().backward()
            optimizer.step()
        return model

    modules = {module.name: module for module in watched(tmp_path, program).modules}

    assert (modules[""].taught, modules[""].taught_in_eval) == (6, 4)
    assert "eval here" in modules[""].eval_at.code
    assert (modules["1"].has_modes, modules["0"].has_modes) == (True, False)


def test_a_norm_is_fresh_until_a_batch_has_set_its_statistics(tmp_path):
    def program():
        model = nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2), nn.BatchNorm1d(2).eval())
        fit(model)
        return model

    modules = {module.name: module for module in watched(tmp_path, program).modules}

    assert (modules["1"].fresh, modules["2"].fresh, modules["0"].fresh) == (False, True, False)


def test_a_model_that_was_copied_can_still_be_swapped(tmp_path):
    def program():
        model = nn.Linear(3, 2)
        twin = copy.deepcopy(model)
        fit(twin)
        torch.utils.swap_tensors(model.weight, nn.Parameter(torch.zeros(2, 3)))
        return model, twin

    assert watched(tmp_path, program).info.raised is None
