"""What is said about a long run, whose file keeps fewer of the older steps, is what all of its steps would say."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

import pytest

from tests.examples_runner import watch_example
from tests.runfile.copies import copy
from whygrad.model import Role
from whygrad.page.rendering import render
from whygrad.run import Run
from whygrad.runfile.reader import read_evidence
from whygrad.runfile.retention import Retention

START = """
import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(64, 8)
y = x @ torch.randn(8, 1)
"""
FALLS_AND_RESTS = """
model = nn.Linear(8, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 120, gamma=0.0)
for step in range(600):
    loss = nn.functional.mse_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    scheduler.step()
"""
TAKES_TURNS = """
maker, judge = nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 8)), nn.Linear(8, 1)
first = torch.optim.Adam(maker.parameters(), lr=0.01)
second = torch.optim.Adam(judge.parameters(), lr=0.01)
lossy = nn.functional.binary_cross_entropy_with_logits
ones, zeros = torch.ones(64, 1), torch.zeros(64, 1)
for step in range(300):
    made = maker(torch.randn(64, 8)).detach()
    second.zero_grad()
    (lossy(judge(x), ones) + lossy(judge(made), zeros)).backward()
    second.step()
    first.zero_grad()
    lossy(judge(made), ones).backward()
    first.step()
"""
BREAKS = """
model = nn.Linear(8, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for step in range(500):
    out = model(x)
    if step == 211:
        out = (out - out).sqrt()
    loss = nn.functional.mse_loss(out, y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
DIES = """
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for step in range(500):
    if step == 150:
        with torch.no_grad():
            model[0].bias.fill_(-100.0)
    loss = nn.functional.mse_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
LEARNS = """
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for step in range(500):
    loss = nn.functional.mse_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
PROGRAMS = {
    "falls-and-rests": FALLS_AND_RESTS,
    "takes-turns": TAKES_TURNS,
    "breaks": BREAKS,
    "dies": DIES,
    "learns": LEARNS,
}


def both(source: str, tmp_path: Path) -> tuple[Run, Run]:
    """Return a run as all of its steps show it, and as a file of fewer does."""
    whole = watch_example(START + source, tmp_path)
    file = copy(whole.evidence, tmp_path / "thinned" / "rank0.whygrad", retention=Retention(160, 100))
    thinned = Run(file, (read_evidence(file),))
    assert not whole.evidence.is_thinned
    assert thinned.evidence.is_thinned
    assert len(thinned.evidence.matrices.steps(Role.GRADIENT)) <= 100
    return whole, thinned


def found(run: Run) -> list[tuple[object, ...]]:
    return [(f.rule, f.severity, f.tensors, f.place and f.place.line) for f in run.findings]


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_findings_are_those_of_the_whole_run(name: str, tmp_path: Path) -> None:
    whole, thinned = both(PROGRAMS[name], tmp_path)

    assert found(thinned) == found(whole)
    assert bool(found(whole)) == (name != "learns")


def test_the_numbers_of_steps_are_those_of_the_run(tmp_path: Path) -> None:
    whole, thinned = both(FALLS_AND_RESTS, tmp_path)

    told = [re.findall(r"(\d+) of (\d+) steps", run.findings[0].message) for run in (whole, thinned)]
    [[(resting, steps)], [(resting_thinned, steps_thinned)]] = told
    assert (resting, steps, steps_thinned) == ("480", "600", "600")
    assert int(resting_thinned) == pytest.approx(480, abs=15)
    assert "600 steps (600 recorded)" in thinned.report()
    assert thinned.table() == whole.table()


def test_a_sample_of_the_recorded_steps_is_spread_over_the_run(tmp_path: Path) -> None:
    _, thinned = both(LEARNS, tmp_path)

    for role in (Role.GRADIENT, Role.OUTPUT):
        sample = thinned.evidence.sample(role, 8)
        assert (sample[0], sample[-1]) == (0, 499)
        assert all(40 <= later - earlier <= 100 for earlier, later in pairwise(sample))


def test_a_sample_is_as_even_where_only_statistics_were_let_go(tmp_path: Path) -> None:
    whole = watch_example(START + LEARNS, tmp_path)
    file = copy(whole.evidence, tmp_path / "thinned" / "rank0.whygrad", retention=Retention(1000, 100))
    evidence = read_evidence(file)

    assert len(evidence.steps) == 500
    assert len(evidence.matrices.steps(Role.WEIGHT)) <= 100
    assert not evidence.is_thinned
    assert evidence.lacks_statistics
    assert all(40 <= later - earlier <= 100 for earlier, later in pairwise(evidence.sample(Role.WEIGHT, 8)))
    assert evidence.share_since(Role.WEIGHT, 0) == 1.0
    middle = next(step for step in evidence.matrices.steps(Role.WEIGHT) if step > 240)
    assert evidence.share_since(Role.WEIGHT, middle) == pytest.approx(1 - middle / 500)


def test_the_page_says_that_older_steps_are_fewer(tmp_path: Path) -> None:
    whole, thinned = both(LEARNS, tmp_path)

    sentence = "Of the older steps of this long run, the run file keeps fewer."
    assert sentence in render(thinned)
    assert sentence not in render(whole)
