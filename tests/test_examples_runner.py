"""Examples run under the probe as programs do."""

from __future__ import annotations

import pytest

from tests.examples_runner import run_example, start_example, watch_example

HEALTHY = """
import torch

torch.manual_seed(0)
inputs, targets = torch.randn(64, 4), torch.randn(64, 1)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
for _ in range(20):
    loss = torch.nn.functional.mse_loss(model(inputs), targets)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


def test_an_example_is_recorded_step_by_step(tmp_path):
    run = watch_example(HEALTHY, tmp_path)

    assert run.evidence.info.script == "train.py"
    assert run.evidence.info.ended
    assert [step.recorded for step in run.evidence.steps] == [True] * 20
    assert [parameter.name for parameter in run.evidence.parameters] == ["weight", "bias"]


def test_a_healthy_example_has_no_findings(tmp_path):
    assert [f for f in run_example(HEALTHY, tmp_path) if f["severity"] != "info"] == []


def test_an_example_that_raises_is_recorded_with_its_error(tmp_path):
    run = watch_example(f"{HEALTHY}\nloss.backward()\n", tmp_path)

    assert run.evidence.info.raised is not None
    assert run.evidence.info.raised.type == "RuntimeError"
    assert run.evidence.info.raised.place.line == HEALTHY.count("\n") + 2


def test_an_example_is_the_main_program(tmp_path):
    ran = start_example("import sys\nprint(__name__, sys.argv, sys.modules['__main__'].__file__)", tmp_path)

    script = str(tmp_path / "train.py")
    assert ran.stdout == f"__main__ {[script]} {script}\n"


def test_an_example_that_cannot_be_watched_shows_why(tmp_path):
    (tmp_path / "run").touch()

    with pytest.raises(AssertionError, match="FileExistsError"):
        watch_example(HEALTHY, tmp_path)
