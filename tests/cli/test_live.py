"""`whygrad live` and `whygrad run --live`, with and without a terminal, with and without Textual."""

import os
import pty
import subprocess
import sys
import time

import pytest

from whygrad.cli import main

PROGRAM = """
import sys, torch
layer = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
for _ in range(5):
    optimizer.zero_grad()
    layer(torch.ones(3, 2)).sum().backward()
    optimizer.step()
print("the program spoke")
sys.exit(3)
"""


def test_without_a_terminal_one_is_told_what_prints_the_same(capsys):
    assert main(["live", "run"]) == 2

    assert "needs a terminal" in capsys.readouterr().err


def test_without_textual_one_is_told_how_to_get_it(monkeypatch, capsys):
    monkeypatch.setattr("whygrad.launch.console.is_terminal", lambda _: True)
    monkeypatch.setitem(sys.modules, "whygrad.live.app", None)

    assert main(["live", "run"]) == 2

    assert "pip install 'whygrad[live]'" in capsys.readouterr().err


@pytest.fixture
def program(tmp_path):
    (tmp_path / "train.py").write_text(PROGRAM)
    return [sys.executable, "-m", "whygrad", "run", "--live", "-o", str(tmp_path / "run"), "train.py"]


def test_where_nobody_looks_the_program_just_runs(program, tmp_path):
    done = subprocess.run(program, cwd=tmp_path, capture_output=True, text=True, check=False)

    assert done.returncode == 3
    assert done.stdout == "the program spoke\n"
    assert "whygrad:" in done.stderr


def test_in_a_terminal_the_view_is_around_the_program_and_its_words_follow(program, tmp_path):
    controller, terminal = pty.openpty()
    env = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "80", "LINES": "24"}
    streams = {"stdin": terminal, "stdout": terminal, "stderr": terminal}
    with subprocess.Popen(program, cwd=tmp_path, env=env, **streams) as run:
        os.close(terminal)
        seen = read_until(controller, b"ended, 5 steps")
        os.write(controller, b"q")
        seen += read_until(controller, None)

    assert run.returncode == 3
    assert b"the program spoke" in seen


def read_until(controller, wanted, seconds=90):
    """Read what a terminal shows until some words have come; None: until it is closed."""
    seen, end = b"", time.monotonic() + seconds
    while wanted is None or wanted not in seen:
        assert time.monotonic() < end, seen[-500:]
        try:
            piece = os.read(controller, 65536)
        except OSError:  # the other side has left
            piece = b""
        if not piece:
            break
        seen += piece
    return seen
