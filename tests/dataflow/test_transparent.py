"""A traced program computes the same bits and shows the same tracebacks."""

import io
import random
import threading
import traceback

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from tests.dataflow.tracing import Trace
from whygrad.probe.tracebacks import clean_traceback


def conv():
    return nn.Sequential(
        *(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(inplace=True), nn.Dropout(0.2), nn.Flatten()),
        nn.Linear(16, 4),
    )


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn, self.out = nn.LSTM(4, 8, 2, dropout=0.1, batch_first=True), nn.Linear(8, 4)

    def forward(self, x):
        return self.out(self.rnn(x[:, 0])[0][:, -1])


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.student = nn.TransformerEncoderLayer(4, 2, 8, batch_first=True)
        self.teacher = nn.TransformerEncoderLayer(4, 2, 8, batch_first=True).eval()

    def forward(self, x):
        with torch.no_grad():
            self.teacher.eval()
            target = self.teacher(x[:, 0])
        return self.student(x[:, 0]).mean(1) + 0.1 * target.mean(1)


class Sampling(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc, self.dec = nn.Linear(16, 8), nn.Linear(8, 4)

    def forward(self, x):
        h = self.enc(x.flatten(1))
        z = torch.distributions.Normal(h, 1.0).rsample() + torch.randn_like(h) * h.detach().std().item()
        return self.dec(z * (torch.rand(1).item() + 1))


MODELS = {"conv": conv, "recurrent": Recurrent, "attention": Attention, "sampling": Sampling}


def fit(make):
    torch.manual_seed(0)
    np.random.seed(0)  # noqa: NPY002 - the generator that programs draw from
    random.seed(0)
    model = make()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    losses = []
    for _ in range(6):
        x, y = torch.randn(8, 1, 4, 4), torch.randint(0, 4, (8,))
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
    state = [value.clone() for value in model.state_dict().values()]
    return losses, state, torch.get_rng_state(), random.random(), np.random.rand()  # noqa: NPY002


@pytest.mark.parametrize("name", MODELS)
def test_the_bits_are_the_same(name):
    plain = fit(MODELS[name])
    trace = Trace()
    with trace.on():
        traced = fit(MODELS[name])
    trace.flow.switch_off()

    assert traced[0] == plain[0]
    assert all(torch.equal(a, b) for a, b in zip(traced[1], plain[1], strict=True))
    assert torch.equal(traced[2], plain[2])
    assert traced[3:] == plain[3:]
    assert not trace.guard.failures


class Failing(torch.autograd.Function):
    @staticmethod
    def forward(_ctx, x):
        return x @ torch.ones(7)

    @staticmethod
    def backward(_ctx, _gradient):
        msg = "in backward"
        raise ValueError(msg)


class FailingBackward(Failing):
    @staticmethod
    def forward(_ctx, x):
        return x * 2


def inference_fails():
    with torch.inference_mode():
        torch.ones(2) + torch.ones(3)


@torch.no_grad()
def no_grad_fails():
    torch.ones(2) + torch.ones(3)


FAILURES = {
    "an operation": lambda: torch.ones(2, requires_grad=True) + torch.ones(3),
    "a function of torch": lambda: F.cross_entropy(torch.ones(2, 3, requires_grad=True), torch.zeros(5).long()),
    "a module": lambda: nn.Sequential(nn.Linear(3, 3), nn.Linear(4, 4))(torch.ones(2, 3)),
    "forward of an autograd.Function": lambda: Failing.apply(torch.ones(3, requires_grad=True)),
    "backward of an autograd.Function": lambda: (
        FailingBackward.apply(torch.ones(3, requires_grad=True)).sum().backward()
    ),
    "a parameter": lambda: nn.Parameter(torch.ones(3, dtype=torch.long)),
    "from_numpy": lambda: torch.from_numpy([1, 2]),
    "inference mode": inference_fails,
    "a block under no_grad": no_grad_fails,
    "backward": lambda: torch.ones(3, requires_grad=True).mul(2).backward(),
}


def shown(failing):
    stream = io.StringIO()
    try:
        failing()
    except (RuntimeError, ValueError, TypeError, IndexError) as error:
        clean_traceback(error)  # as the session's excepthook does
        traceback.print_exc(file=stream)
    return stream.getvalue()


@pytest.mark.parametrize("where", FAILURES)
def test_the_traceback_is_the_same(where):
    plain = shown(FAILURES[where])
    trace = Trace()
    with trace.on():
        traced = shown(FAILURES[where])
    trace.flow.switch_off()

    assert "Error" in plain
    assert traced == plain


def test_an_error_in_a_thread_shows_the_same_traceback(monkeypatch):
    texts = []
    monkeypatch.setattr(threading, "excepthook", lambda args: texts.append(traceback.format_exception(args.exc_value)))

    def work():
        torch.ones(2) + torch.ones(3)

    def run():
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()

    run()
    trace = Trace()
    with trace.on():
        run()
    trace.flow.switch_off()

    assert texts[0] == texts[1]
    assert "RuntimeError" in texts[0][-1]
