"""A run that is killed leaves a file that reports up to its last flush."""

import signal
import subprocess
import sys
import time

from tests.programs import run

ENDLESS = """
import torch
from torch import nn
model = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 1))
optimizer = torch.optim.SGD(model[2].parameters(), lr=0.01)
while True:
    optimizer.zero_grad()
    model(torch.randn(8, 4)).square().mean().backward()
    optimizer.step()
    print("stepped", flush=True)
"""


def test_a_killed_run_reports_up_to_its_last_flush(tmp_path):
    (tmp_path / "train.py").write_text(ENDLESS)
    program = subprocess.Popen(
        [sys.executable, "-m", "whygrad", "run", "train.py"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    for _ in range(80):
        assert program.stdout.readline() == b"stepped\n"
    program.send_signal(signal.SIGKILL)
    program.communicate()
    time.sleep(0.1)

    report = run([sys.executable, "-m", "whygrad", "report"], tmp_path)

    assert report.status == 1
    assert "not-in-optimizer" in report.stdout
    assert "the run did not end" in report.stdout
