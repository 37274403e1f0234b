"""The live view, driven by keys; and against a process that really trains."""

import asyncio
import subprocess
import sys
import time
from functools import partial

from textual.widgets import DataTable, Input, Static

from tests.page.runs import failing_run
from whygrad.errors import WhygradError
from whygrad.live.app import Detail, LiveApp
from whygrad.run import load

TRAINING = """
import time, torch
from pathlib import Path
from torch import nn
body, head = nn.Linear(4, 8), nn.Linear(8, 1)
head.requires_grad_(False)
model = nn.Sequential(body, nn.ReLU(), head)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
while not Path("enough").exists():
    optimizer.zero_grad()
    model(torch.randn(4, 4)).pow(2).mean().backward()
    optimizer.step()
    time.sleep(0.05)
"""


def driven(app, drive):
    """Run the app in 80 x 24 without a terminal while `drive(pilot)` presses keys."""

    async def main():
        async with app.run_test(size=(80, 24)) as pilot:
            await drive(pilot)

    asyncio.run(main())


async def until(pilot, holds, seconds=30.0):
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "it did not come"
        await pilot.pause(0.1)


def names(app):
    table = app.query_one("#table", DataTable)
    return [str(table.get_row_at(i)[4]) for i in range(table.row_count)]


def shown(app, selector):
    return str(app.query_one(selector, Static).content)


def test_it_shows_the_verdict_the_parameters_and_the_findings():
    app = LiveApp(failing_run, "run")

    async def drive(pilot):
        await until(pilot, lambda: names(app) == ["head.weight", "body.weight"])
        assert "1 of 2 parameters do not learn" in shown(app, "#verdict")
        assert "train.py:41" in shown(app, "#findings")
        assert "loss" in shown(app, "#loss")

    driven(app, drive)


def test_sorting_filtering_and_opening():
    app = LiveApp(failing_run, "run")

    async def drive(pilot):
        await until(pilot, lambda: len(names(app)) == 2)
        await pilot.press("s")
        assert names(app) == ["body.weight", "head.weight"]
        await pilot.press("slash", *"head")
        assert app.query_one("#filter", Input).value == "head"
        assert names(app) == ["head.weight"]
        await pilot.press("enter", "enter")
        await until(pilot, lambda: isinstance(app.screen, Detail))
        await pilot.press("escape")
        await pilot.press("escape")
        assert len(names(app)) == 2

    driven(app, drive)


def test_a_run_that_is_not_there_yet_is_waited_for():
    calls = []

    def read():
        calls.append(None)
        if len(calls) < 3:
            msg = "there is no run yet"
            raise WhygradError(msg)
        return failing_run()

    app = LiveApp(read, "run")

    async def drive(pilot):
        await until(pilot, lambda: "no run yet" in shown(app, "#verdict"))
        await until(pilot, lambda: len(names(app)) == 2)

    driven(app, drive)


def test_a_process_that_trains_is_followed_and_left_alone(tmp_path):
    (tmp_path / "train.py").write_text(TRAINING)
    folder = tmp_path / "run"
    command = [sys.executable, "-m", "whygrad", "run", "-o", str(folder), "train.py"]
    app = LiveApp(partial(load, folder), "run")
    seen = []

    async def drive(pilot):
        await until(pilot, lambda: len(names(app)) == 4, 60)
        seen.append(app._run.evidence.info.steps)
        await until(pilot, lambda: app._run.evidence.info.steps > seen[0], 60)
        (tmp_path / "enough").touch()
        await until(pilot, lambda: app._run.evidence.info.ended, 60)

    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as program:
        driven(app, drive)
        _, verdict = program.communicate(timeout=120)

    assert program.returncode == 0
    assert b"frozen-parameter" in verdict or b"nothing" in verdict
    assert load(folder).evidence.info.ended
