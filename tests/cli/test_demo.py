from __future__ import annotations

import re
import sys
from pathlib import Path

from tests.programs import run
from whygrad.cli.demo import ACTIVATIONS


def test_the_demonstration_shows_that_gradients_vanish(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "whygrad", "demo", "--depth", "6", "--activation", "relu", "sigmoid", "--steps", "4"]
    (tmp_path / "whygrad.toml").write_text(
        "every = 3\nfail-on = 'info'"
    )  # the demonstration is not to be changed by it

    shown = run(words, tmp_path)

    assert (0, "") == (shown.status, shown.stderr)
    assert "gradient of parameters, 4 recorded steps" in shown.stdout
    # Of each of the two runs a table and of both a picture: the six layers.
    assert 3 == len(re.findall(r"^10\.weight ", shown.stdout, re.MULTILINE))
    [less] = re.findall(r"With Sigmoid, `0\.weight` \(nearest the input\) gets ([\d,]+) times less", shown.stdout)
    assert int(less.replace(",", "")) > 100
    runs = sorted(tmp_path.glob(".whygrad/demo-*/rank0.whygrad"))
    assert ["ReLU", "Sigmoid"] == [file.parent.name.split("-")[1] for file in runs]
    assert (tmp_path / ".whygrad" / ".gitignore").exists()


def test_every_activation_is_one_of_torchs() -> None:
    from torch import nn

    assert all(issubclass(getattr(nn, name), nn.Module) for name in ACTIVATIONS)
