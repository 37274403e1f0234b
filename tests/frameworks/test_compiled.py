"""torch.compile: no more is compiled than without whygrad, and what learns is still told from what does not."""

import runpy

import pytest

from tests.examples_runner import RUN_FOLDER, run_example
from tests.programs import SCRIPT
from tests.zygote import MODULES, Zygote
from whygrad.run import load

HEAD = """
import torch
from torch import nn
from torch._dynamo.utils import counters

torch.manual_seed(0)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head, self.spare = nn.Linear(4, 8), nn.Linear(8, 1), nn.Linear(8, 1)

    def forward(self, x):
        return self.head(self.body(x).relu()).squeeze(1)


net = Net()
"""
LOOP = """
optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
for step in range(12):
    x = torch.randn(16, 4)
    loss = (model(x) - x[:, 0]).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item(), sum(p.sum().item() for p in net.parameters()), torch.rand(1).item())
print({name: dict(counters[name]) for name in ("frames", "stats", "graph_break", "recompiles")})
"""
WAYS = {
    "a model": "model = torch.compile(net, backend='eager')\n",
    "in place": "net.compile(backend='eager')\nmodel = net\n",
    "a layer": "net.body = torch.compile(net.body, backend='eager')\nmodel = net\n",
    "a function": "@torch.compile(backend='eager')\ndef model(x):\n    return net(x)\n",
    "after some steps": "plain, compiled = net, torch.compile(net, backend='eager')\n"
    "def model(x):\n    return compiled(x) if step > 3 else plain(x)\n",
}
HOOKED = """
    if step == {step}:
        net.body.register_forward_hook(lambda module, inputs, output: 2 * output)  # compiled-hook-ignored
"""


def plain(arguments):
    """Run a script without whygrad: the life of a fork."""
    runpy.run_path(arguments[0], run_name="__main__")


@pytest.fixture(scope="module")
def zygote():
    with Zygote((*MODULES, "whygrad.probe.session")) as process:
        yield process


@pytest.mark.parametrize("way", WAYS)
def test_the_same_is_compiled_and_computed_as_without_whygrad(way, zygote, tmp_path):
    (tmp_path / SCRIPT).write_text(HEAD + WAYS[way] + LOOP, encoding="utf-8")

    without = zygote.call(f"{__name__}:plain", [SCRIPT], tmp_path)
    watched = zygote.call("tests.examples_runner:watch", [SCRIPT, RUN_FOLDER], tmp_path)
    run = load(tmp_path / RUN_FOLDER)

    assert without.status == watched.status == 0, watched.stderr
    assert without.stdout == watched.stdout
    silent = {p.name: p.gradient_steps for p in run.evidence.parameters}
    assert silent == {name: 0 if "spare" in name else 12 for name in silent}
    assert len(silent) == 6
    assert any("torch.compile is in use" in note for note in run.notes)
    assert all("switched off" not in note for note in run.notes)


def with_hook(at, more=""):
    begin, end = LOOP.split("    x = ", 1)
    return HEAD + WAYS["a model"] + begin + HOOKED.format(step=at).lstrip("\n") + more + "    x = " + end


def test_a_hook_that_came_too_late_is_found_at_its_line(tmp_path):
    source = with_hook(3)
    line = next(number for number, text in enumerate(source.splitlines(), 1) if "compiled-hook-ignored" in text)

    found = run_example(source, tmp_path)

    assert [(f["rule"], f["line"]) for f in found] == [("compiled-hook-ignored", line)]
    assert found[0]["evidence"]["steps"] == 9


@pytest.mark.parametrize(("at", "more"), [(0, ""), (3, "        torch._dynamo.reset()\n")])
def test_a_hook_that_is_compiled_in_is_silence(at, more, tmp_path):
    assert [f["rule"] for f in run_example(with_hook(at, more), tmp_path)] == []
