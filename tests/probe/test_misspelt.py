"""Attributes that look like requires_grad and are none are noted, with the line that sets them."""

import torch
from torch import nn

from tests.examples_runner import watch_example

PROGRAM = """
import torch
from torch import nn

model = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 1)).requires_grad_(False)
model.is_trained = True
{setting}
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
model(torch.ones(2, 3)).sum()
"""


def noted(setting, tmp_path):
    run = watch_example(PROGRAM.format(setting=setting), tmp_path)
    names = {parameter.id: parameter.name for parameter in run.evidence.parameters}
    return [
        (e.subject, e.detail["value"], [names[i] for i in e.detail["parameters"]], e.place.code)
        for e in run.evidence.events_of("mere_attribute")
    ]


def test_a_misspelt_attribute_of_a_parameter_is_noted(tmp_path):
    setting = "model[1].weight.require_grad = True"

    assert noted(setting, tmp_path) == [("1.weight", True, ["1.weight"], setting)]


def test_requires_grad_of_a_module_concerns_the_parameters_in_it(tmp_path):
    setting = "model[1].requires_grad = False"

    assert noted(setting, tmp_path) == [("1", False, ["1.weight", "1.bias"], setting)]


def test_the_real_thing_and_other_flags_are_not_noted(tmp_path):
    assert noted("model[1].requires_grad_(True); model[0].weight.requires_grad = True", tmp_path) == []


def test_torch_keeps_its_tensors_attributes_apart_from_the_switch():
    weight = nn.Parameter(torch.ones(1))
    weight.requires_grad = False

    assert vars(weight) == {}
