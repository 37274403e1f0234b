from __future__ import annotations

import math

import pytest
import torch

from tests.stats.accelerator.fake import accelerators
from tests.stats.reference import assert_same, by_hand, noise
from whygrad.stats.accelerator.accelerators import CAPTURED, Accelerators
from whygrad.stats.accelerator.samples import Samples
from whygrad.stats.changes import SAMPLE
from whygrad.stats.changes import Samples as HomeSamples
from whygrad.stats.kernel import measure
from whygrad.stats.pending import Chosen, Settled


def several(seed=0):
    return [noise(30, 40, seed=seed), noise(7, seed=seed + 1), noise(70_000, seed=seed + 2)]


def test_cpu_tensors_are_measured_at_once_where_there_is_no_accelerator():
    pending = Accelerators().begin(several(), histograms=True)
    assert isinstance(pending, Settled)
    assert pending.is_ready()
    here = measure(several(), histograms=True)
    assert torch.equal(pending.read().matrix, here.matrix)
    assert torch.equal(pending.read().histograms, here.histograms)


def test_a_step_is_one_copy_however_much_was_measured():
    owner, device = accelerators()
    pending = [owner.begin(several(), histograms=True), owner.begin(several(5)), owner.begin([])]
    assert device.log == []
    owner.send()
    assert device.log == ["buffer", "copied"]
    for each, tensors in zip(pending, (several(), several(5)), strict=False):
        for row, tensor in zip(each.read().matrix, tensors, strict=True):
            assert_same(row, by_hand(tensor))


def test_nothing_is_ready_before_the_device_was_there():
    owner, device = accelerators(patience=3)
    pending = owner.begin(several())
    assert not pending.is_ready()  # not even sent
    owner.send()
    asked = [pending.is_ready() for _ in range(5)]
    assert asked == [False, False, False, True, True]
    assert not pending.read().matrix.isnan().any()
    assert "waited" not in device.log


def test_reading_before_it_is_ready_waits_and_gives_the_right_numbers():
    owner, device = accelerators(patience=100)
    tensors = several()
    pending = owner.begin(tensors)
    found = pending.read()
    assert "waited" in device.log
    assert_same(found.matrix[0], by_hand(tensors[0]))
    assert pending.read() is found
    assert device.log.count("copied") == 1


def test_later_changes_of_the_tensors_do_not_reach_what_was_launched():
    owner, _ = accelerators()
    tensors = several()
    expected = [by_hand(tensor) for tensor in tensors]
    pending = owner.begin(tensors)
    for tensor in tensors:
        tensor.fill_(math.nan)
    owner.send()
    for row, right in zip(pending.read().matrix, expected, strict=True):
        assert_same(row, right)


def test_the_ring_grows_while_nothing_has_arrived_and_then_goes_round():
    owner, device = accelerators(patience=10_000)
    early = []
    for step in range(5):
        early.append(owner.begin(several(step)))
        owner.send()
    assert len(device.buffers) == 5
    assert "waited" not in device.log
    device.patience = 0
    for pending in early:
        pending.read()
    owner.begin(several())
    owner.send()
    for step in range(20):
        owner.begin(several(step))
        owner.send()
    assert len(device.buffers) == 5


def test_a_buffer_is_used_again_only_when_its_numbers_were_taken_out_of_it():
    owner, device = accelerators(patience=1)
    tensors = [[noise(50, seed=step)] for step in range(30)]
    pending = []
    for each in tensors:
        pending.append(owner.begin(each))
        owner.send()
    assert len(device.buffers) <= 4
    for each, (tensor,) in zip(pending, tensors, strict=True):
        assert_same(each.read().matrix[0], by_hand(tensor))


def test_a_larger_step_gets_a_larger_buffer():
    owner, device = accelerators(patience=0)
    for many in (1, 1000, 1):
        pending = owner.begin([noise(3, seed=seed) for seed in range(many)])
        owner.send()
        assert pending.read().matrix.shape == (many, 8)
    assert [buffer.numel() for buffer in device.buffers] == [4096, 8192]


def test_what_cannot_be_measured_is_known_at_once():
    owner, _ = accelerators()
    pending = owner.begin([noise(3), torch.ones(2, dtype=torch.complex64), noise(4)])
    assert pending.refused == {1: "complex64 tensors are not measured"}
    matrix = pending.read().matrix
    assert matrix[:, 0].tolist() == [3.0, 0.0, 4.0]


def test_rows_can_be_chosen_before_they_are_there():
    owner, _ = accelerators(patience=5)
    chosen = Chosen(owner.begin([noise(3), noise(5), noise(4)], histograms=True), [0, 2])
    assert not chosen.is_ready()
    found = chosen.read()
    assert found.matrix[:, 0].tolist() == [3.0, 4.0]
    assert found.histograms.sum(1).tolist() == [3, 4]


def test_nothing_is_launched_into_a_graph_that_is_being_recorded():
    owner, device = accelerators()
    before = owner.begin([noise(3)])
    owner.transports.capturing = True
    owner.send()
    during = owner.begin(several(), histograms=True)
    samples = Samples(several(), owner)
    updates = samples.updates(several())
    rows = owner.begin_rows(torch.full((1, 8), math.nan, dtype=torch.float64), {0: torch.ones(8)})
    assert during.refused == dict.fromkeys(range(3), CAPTURED)
    assert not before.is_ready()
    assert device.log == []
    owner.transports.capturing = False
    for nothing in (during, updates, rows):
        assert not nothing.read().matrix.any()
    assert before.read().matrix[0, 0] == 3


def test_rows_that_were_measured_one_by_one_are_gathered():
    owner, _ = accelerators()
    here = torch.arange(24, dtype=torch.float64).view(3, 8)
    pending = owner.begin_rows(here.clone(), {1: torch.full((8,), 7.0), 2: torch.full((8,), 8.0)})
    assert not pending.is_ready()
    assert pending.read().matrix.tolist() == [here[0].tolist(), [7.0] * 8, [8.0] * 8]


def test_the_time_of_the_device_counts_beyond_that_of_the_host():
    owner, _ = accelerators(seconds=100.0)
    owner.begin([noise(3)]).read()
    assert 90 < owner.excess_s <= 100
    quick, _ = accelerators(seconds=0.0)
    quick.begin([noise(3)]).read()
    assert quick.excess_s == 0


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16, torch.int64])
def test_updates_are_those_of_the_cpu(dtype):
    before = [(noise(count, seed=count) * 9).to(dtype) for count in (3, 16_384, 16_385, 100_000, 0)]
    after = [tensor.clone() for tensor in before]
    for tensor in after:
        tensor[::3] += 1
    here, (owner, _) = HomeSamples(before), accelerators()
    there = Samples(before, owner)
    found = there.updates(after)
    expected = here.updates(after)
    for row, right in zip(found.read().matrix, expected, strict=True):
        assert torch.allclose(row, right, rtol=1e-6, atol=1e-6)
    assert found.read().matrix[:, 5].tolist() == expected[:, 5].tolist()


def test_samples_are_copies():
    tensor = noise(100)
    owner, _ = accelerators()
    samples = Samples([tensor], owner)
    tensor += 1
    assert samples.updates([tensor]).read().matrix[0, 4] == pytest.approx(1, rel=1e-5)


def test_a_tensor_that_is_gone_or_has_become_another_one_gives_zeros():
    owner, _ = accelerators()
    samples = Samples([noise(5), noise(6), noise(7), noise(30_000)], owner)
    gone = torch.empty(0)
    matrix = samples.updates([gone, noise(6), noise(7).double(), noise(30_000)]).read().matrix
    assert matrix[:, 0].tolist() == [0.0, 6.0, 0.0, float(SAMPLE)]
    assert matrix[:, 5].tolist() == [0.0, 6.0, 0.0, float(SAMPLE)]


def test_autograd_is_left_alone():
    owner, _ = accelerators()
    leaf = noise(30, 40).requires_grad_()
    pending = owner.begin([leaf, leaf * 2])
    assert not pending.read().matrix.requires_grad
    (leaf * 2).sum().backward()
    assert torch.equal(leaf.grad, torch.full((30, 40), 2.0))
