"""Steps that call a closure are recorded like any other step, and the closure cannot tell."""

import traceback

import pytest
import torch
from torch import nn

from tests.probe.watched import watched
from whygrad.model import Role

X = torch.arange(12.0).reshape(4, 3) / 10


@pytest.mark.parametrize("keyword", [False, True])
def test_gradients_weights_and_updates_are_read_between_the_closure_and_the_update(keyword, tmp_path):
    weights = []

    def program():
        torch.manual_seed(0)
        model = nn.Linear(3, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.5)

        def closure():
            optimizer.zero_grad()
            loss = model(X).pow(2).mean()
            loss.backward()
            return loss

        for _ in range(4):
            weights.append(model.weight.detach().abs().sum().item())
            optimizer.step(closure=closure) if keyword else optimizer.step(closure)

    evidence = watched(tmp_path, program)
    number = next(p.id for p in evidence.parameters if p.name == "weight")

    recorded = [evidence.matrices.read(step, Role.WEIGHT)[number].sum_abs for step in range(4)]
    updates = [evidence.matrices.read(step, Role.UPDATE)[number].sum_abs for step in range(4)]
    gradients = [evidence.matrices.read(step, Role.GRADIENT)[number].sum_abs for step in range(4)]
    assert recorded == pytest.approx(weights)
    assert updates == pytest.approx([0.5 * gradient for gradient in gradients])
    assert evidence.info.steps == evidence.info.backwards == 4


def test_a_closure_that_is_called_again_and_again_is_one_step(tmp_path):
    def program():
        torch.manual_seed(0)
        model = nn.Linear(3, 1)
        optimizer = torch.optim.LBFGS(model.parameters(), max_iter=5)

        def closure():
            optimizer.zero_grad()
            loss = (model(X) - 1).pow(2).mean()
            loss.backward()
            return loss

        for _ in range(3):
            optimizer.step(closure)

    evidence = watched(tmp_path, program)

    assert evidence.info.steps == 3
    assert evidence.info.backwards > 3
    assert len(evidence.matrices.steps(Role.UPDATE)) == 3


def test_an_error_of_a_closure_shows_no_frame_of_ours(tmp_path):
    shown = []

    def program():
        optimizer = torch.optim.SGD(nn.Linear(3, 1).parameters(), lr=0.5)

        def closure():
            msg = "broken"
            raise ValueError(msg)

        try:
            optimizer.step(closure)
        except ValueError as error:
            shown.extend(entry.filename for entry in traceback.extract_tb(error.__traceback__))

    watched(tmp_path, program)

    assert shown
    assert not [file for file in shown if "whygrad" in file and "tests" not in file]
