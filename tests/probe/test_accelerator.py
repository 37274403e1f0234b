"""Programs on an accelerator, of which there is none here: on tensors without values, and on a device that is slow."""

from __future__ import annotations

import dataclasses
import math

import pytest
import torch
from torch import nn

from tests.probe.watched import watched
from tests.stats.accelerator.fake import Device, Transports
from whygrad.evidence import Evidence
from whygrad.model import Role
from whygrad.probe import parameters, session
from whygrad.probe.arrivals import Arrivals
from whygrad.stats import support
from whygrad.stats.accelerator.accelerators import Accelerators


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(50, 32)
        self.recurrent = nn.GRU(32, 32, batch_first=True)
        self.convolution = nn.Conv1d(32, 32, 3, padding=1)
        self.norms = nn.ModuleList([nn.BatchNorm1d(32), nn.LayerNorm(32)])
        self.head = nn.Linear(32, 10)
        self.unused = nn.Linear(3, 3)

    def forward(self, x):
        hidden, _ = self.recurrent(self.embedding(x))
        hidden = self.norms[0](self.convolution(hidden.transpose(1, 2))).relu().transpose(1, 2)
        hidden = self.norms[1](hidden).sigmoid() * hidden.tanh()
        return self.head(nn.functional.dropout(hidden.mean(1), 0.1, self.training))


def train(device, steps):
    """Do what training programs do, and look at no value."""
    torch.manual_seed(0)
    net, average, large = Net().to(device), Net().to(device), nn.Linear(300, 300).to(device)
    adam, sgd = torch.optim.AdamW(net.parameters(), lr=1e-3), torch.optim.SGD(large.parameters(), lr=0.01)
    schedule = torch.optim.lr_scheduler.StepLR(adam, 3)
    for step in range(steps):
        x, y = torch.randint(0, 50, (8, 12), device=device), torch.randint(0, 10, (8,), device=device)
        out = net(x)
        loss = nn.functional.cross_entropy(out, y) + 0.1 * out.softmax(-1).clamp_min(1e-6).log().mean()
        loss = loss + out.pow(2).sum().sqrt() / out.abs().sum() + nn.functional.mse_loss(out, torch.zeros_like(out))
        (loss / 2).backward(retain_graph=True)
        (loss / 2).backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        nn.utils.clip_grad_value_(net.parameters(), 1.0)
        adam.step()
        schedule.step()
        adam.zero_grad()
        large(torch.rand(4, 300, device=device)).relu().mean().backward()
        sgd.step()
        sgd.zero_grad()
        with torch.no_grad():
            for mine, other in zip(net.parameters(), average.parameters(), strict=True):
                other.mul_(0.9).add_(mine, alpha=0.1)
        if step % 4 == 2:
            net.eval()
            with torch.no_grad():
                net(x)
            net.load_state_dict(average.state_dict())
            net.train()
    return net, average, large, adam, sgd


class WithoutValues(Device):
    def copy(self, source, target):
        assert source.is_meta
        super().copy(torch.zeros(source.shape, dtype=source.dtype), target)


def use(monkeypatch, device):
    transports = Transports(device)
    monkeypatch.setattr(session, "Arrivals", lambda *args: Arrivals(*args, Accelerators(transports)))


@pytest.mark.parametrize("every", [1, 5])
def test_no_value_is_asked_for_by_what_watches_a_program(monkeypatch, tmp_path, every):
    kind = support._unmeasured_kind
    monkeypatch.setattr(support, "_unmeasured_kind", lambda t: None if t.is_meta and not t.is_nested else kind(t))
    monkeypatch.setattr(parameters.ParameterTable, "fetch_rows", lambda _table: None)  # at the end it may wait
    device = WithoutValues(patience=5)
    use(monkeypatch, device)
    evidence = watched(tmp_path, lambda: train("meta", 7), every=every)  # which asserts that no part has failed
    recorded = sum(step.recorded for step in evidence.steps)
    assert len(evidence.steps) == 14
    assert device.log.count("copied") == recorded
    assert device.log.count("buffer") < 8
    if "waited" in device.log:  # at the end, and no sooner
        assert "copied" not in device.log[device.log.index("waited") :]


def totals(evidence: Evidence):
    """Return the totals by role and id, but for the gradients as backward left them: these are for the CPU only."""
    return {(total.role, total.id): total for total in evidence.totals if total.role is not Role.BACKWARD}


def test_what_a_slow_device_sends_is_what_the_cpu_measures(monkeypatch, tmp_path):
    here = watched(tmp_path / "here", lambda: train("cpu", 4), every=2)
    use(monkeypatch, Device(patience=5))
    there = watched(tmp_path / "there", lambda: train("cpu", 4), every=2)
    assert len(here.steps) == len(there.steps) == 8
    for mine, other in zip(here.steps, there.steps, strict=True):
        for field in ("gradient_l2", "weight_l2", "update_l2"):
            one, two = getattr(mine, field), getattr(other, field)
            assert one is two is None or math.isclose(one, two, rel_tol=1e-5), (mine.id, field)
    assert totals(here).keys() == totals(there).keys()
    for key, one in totals(here).items():
        two = totals(there)[key]
        assert (one.steps, one.zero_steps, one.nonfinite_steps) == (two.steps, two.zero_steps, two.nonfinite_steps)
        largest = one.statistics.sum_abs
        for name, value in dataclasses.asdict(one.statistics).items():
            assert math.isclose(value, getattr(two.statistics, name), rel_tol=1e-5, abs_tol=1e-6 * largest), (key, name)
