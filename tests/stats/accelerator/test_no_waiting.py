"""What runs in the hot path must not make the host wait for a device.

Two nets: tensors on the meta device, which have no values, so that whatever depends on one raises; and a mode that
refuses the operations by which values reach the host.
"""

from __future__ import annotations

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from tests.stats.accelerator.fake import accelerators
from tests.stats.reference import noise
from whygrad.stats.accelerator import accelerators as accelerators_module
from whygrad.stats.accelerator.accelerators import Accelerators
from whygrad.stats.accelerator.plan import Sampler, changes, keep, reduce
from whygrad.stats.accelerator.samples import Samples
from whygrad.stats.accelerator.shipment import Dock

WAITING = {
    torch.ops.aten._local_scalar_dense.default,
    torch.ops.aten.is_nonzero.default,
    torch.ops.aten.equal.default,
    torch.ops.aten.nonzero.default,
    torch.ops.aten.masked_select.default,
    torch.ops.aten._unique2.default,
    torch.ops.aten.bincount.default,
    torch.ops.aten.index.Tensor,  # with a mask
    torch.ops.aten._to_copy.default,  # nothing is sent in any other way than by the transport
}

MISTAKES = {
    "item": lambda t: t.sum().item(),
    "float": lambda t: float(t.sum()),
    "bool": lambda t: bool(t.any()),
    "if": lambda t: 1 if t.sum() > 0 else 2,
    "tolist": lambda t: t.tolist(),
    "cpu": lambda t: t.cpu(),
    "to": lambda t: t.to("cpu"),
    "equal": lambda t: torch.equal(t, t + 1),
    "nonzero": lambda t: t.nonzero(),
    "mask": lambda t: t[t > 0],
    "bincount": lambda t: torch.bincount(t.long()),
    "unique": lambda t: t.unique(),
}


class HostWaitsError(Exception):
    pass


class NothingWaits(TorchDispatchMode):
    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        to_the_host = function is not torch.ops.aten._to_copy.default or (kwargs or {}).get("device") is not None
        if function in WAITING and to_the_host:
            raise HostWaitsError(function)
        return function(*args, **(kwargs or {}))


def tensors_on(device):
    shapes = [(300, 400), (7,), (), (0,), (64, 3, 3, 3), (1000, 1000)]
    plain = [torch.empty(shape, device=device) for shape in shapes]
    return [
        *plain,
        torch.empty(40, 30, device=device).T,
        torch.empty(40, 30, device=device)[::2, ::3],
        torch.empty(1, 5, device=device).expand(9, 5),
        *(torch.empty(70_000, dtype=d, device=device) for d in (torch.float64, torch.float16, torch.bfloat16)),
        torch.empty(9, dtype=torch.int64, device=device),
        torch.empty(9, dtype=torch.float8_e5m2, device=device),
    ]


@pytest.mark.parametrize("mistake", MISTAKES.values(), ids=MISTAKES)
def test_the_meta_device_catches_whoever_looks(mistake):
    with pytest.raises((RuntimeError, NotImplementedError)):
        mistake(torch.empty(5, device="meta"))


@pytest.mark.parametrize(
    "name", sorted(MISTAKES.keys() - {"cpu", "to", "tolist"})
)  # those are no operations on the CPU
def test_the_mode_catches_whoever_looks(name):
    mistake = MISTAKES[name]
    with NothingWaits(), pytest.raises(HostWaitsError):
        mistake(torch.ones(5))


@pytest.mark.parametrize("histograms", [False, True])
def test_tensors_without_values_can_be_reduced(histograms):
    vector, layout = reduce(tensors_on("meta"), Sampler(), histograms=histograms)
    assert vector.is_meta
    assert vector.dtype is torch.float64
    assert vector.shape == (layout.numel,)


def test_changes_of_tensors_without_values_can_be_reduced():
    tensors, sampler = tensors_on("meta"), Sampler()
    kept = keep(tensors, sampler, 16_384)
    now = [*tensors[:3], None, torch.empty(5, device="meta"), *tensors[5:]]
    vector, layout = changes(kept, now, sampler, 16_384)
    assert vector.is_meta
    assert vector.shape == (layout.numel,)
    assert layout.counts[3:5] == [0, 0]
    assert layout.counts[0] == 16_384


def test_a_step_of_tensors_without_values_runs_up_to_the_copy(monkeypatch):
    monkeypatch.setattr(accelerators_module, "refusal", lambda _tensor: None)
    sent = []
    monkeypatch.setattr(Dock, "send", lambda _dock, vectors: sent.append(vectors))
    device = accelerators()[0]
    tensors = tensors_on("meta")
    device.begin(tensors, histograms=True)
    device.begin(tensors)
    samples = Samples(tensors, device)
    samples.updates(tensors)
    device.begin_rows(torch.zeros(3, 8, dtype=torch.float64), {1: torch.empty(8, device="meta")})
    device.send()
    ((first, second, third, fourth),) = sent
    assert all(vector.is_meta for vector in (first, second, third, fourth))


def test_a_recorded_step_asks_for_no_value_and_waits_for_nothing():
    owner, device = accelerators(patience=10)
    tensors = [noise(300, 400), noise(7), noise(100_000, dtype=torch.bfloat16), torch.empty(0)]
    begin, begin_rows = Accelerators.begin.__wrapped__, Accelerators.begin_rows.__wrapped__
    with NothingWaits():
        pending = [begin(owner, tensors, histograms=True), begin(owner, tensors)]
        samples = Samples.__new__(Samples)
        Samples.__init__.__wrapped__(samples, tensors, owner)
        pending.append(Samples.updates.__wrapped__(samples, tensors))
        pending.append(begin_rows(owner, torch.zeros(1, 8, dtype=torch.float64), {0: torch.zeros(8)}))
        Accelerators.send.__wrapped__(owner)
        ready = [each.is_ready() for each in pending]
        Accelerators.send.__wrapped__(owner)
    assert ready == [False] * 4
    assert device.log.count("copied") == 1
    assert "waited" not in device.log
