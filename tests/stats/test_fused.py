"""The compiled kernel and the ones in plain torch give the same numbers."""

from __future__ import annotations

import importlib
import math
import os
import subprocess
import sys
import threading

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.stats.reference import FLOATS, assert_same, by_hand, noise
from whygrad.stats import fused
from whygrad.stats.addresses import address, has_nonzero_bytes
from whygrad.stats.changes import SAMPLE, Samples
from whygrad.stats.histogram import size_histogram
from whygrad.stats.kernel import many_updates, measure
from whygrad.stats.library import COPIES, library
from whygrad.stats.sampling import sample_view
from whygrad.stats.silence import mark_rows, rows_with_gradient
from whygrad.stats.single import masked_row

kernel = library()
pytestmark = pytest.mark.skipif(kernel is None, reason="the compiled kernel was not built")
SPECIAL = (0.0, -0.0, 1e-25, 1e-45, 1e30, -3e38, 6e-8, math.nan, math.inf, -math.inf)
ODD = (1, 2, 7, 15, 16, 17, 31, 63, 64, 65, 511, 2047, 2048, 2049, 4100)


@pytest.fixture(params=["any", "avx2", "avx512"])
def copy(request):
    """Each copy of the kernel's passes that this processor can run."""
    if not kernel.held.whygrad_choose(COPIES[request.param]):
        pytest.skip("not on this processor")
    yield request.param
    kernel.held.whygrad_choose(COPIES["best"])


def fused_row(tensor, *, threads=1):
    torch.set_num_threads(threads)
    try:
        found = fused.measure(kernel, [tensor], histograms=True)
    finally:
        torch.set_num_threads(1)
    assert found.left == []
    return found.matrix[0], found.histograms[0]


@pytest.mark.usefixtures("copy")
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("count", ODD)
def test_each_copy_gives_the_numbers_of_the_reference(dtype, count):
    spread = torch.logspace(-30, 6, count, dtype=torch.float64)
    tensor = (noise(count, dtype=torch.float64) * spread).to(dtype)
    row, histogram = fused_row(tensor)
    assert_same(row, by_hand(tensor))
    assert histogram.tolist() == size_histogram(tensor).tolist()


@given(
    st.sampled_from(FLOATS), st.sampled_from(ODD), st.lists(st.sampled_from(SPECIAL), max_size=12), st.integers(0, 99)
)
@settings(deadline=None, max_examples=150)
def test_numbers_at_the_edges_count_as_by_hand(dtype, count, special, seed):
    tensor = noise(count, dtype=dtype, seed=seed)
    for index, number in enumerate(special[:count]):
        tensor[index * 7919 % count] = number
    row, histogram = fused_row(tensor)
    assert_same(row, by_hand(tensor))
    assert histogram.tolist() == size_histogram(tensor).tolist()


@pytest.mark.usefixtures("copy")
def test_squares_neither_vanish_nor_overflow():
    for size in (1e-25, 1e30, 1e-44):
        row, _ = fused_row(torch.full((5_000,), size))
        exact = float(torch.tensor(size))
        assert row[2].item() == pytest.approx(5_000 * exact * exact, rel=1e-12)


@pytest.mark.usefixtures("copy")
def test_sums_are_exact_to_a_billionth():
    tensor = noise(300_001)
    row, _ = fused_row(tensor)
    wide = tensor.double()
    assert row[2].item() == pytest.approx((wide * wide).sum().item(), rel=2e-9)
    assert row[3].item() == pytest.approx(wide.abs().sum().item(), rel=2e-9)


def test_threads_change_no_bit():
    tensor = noise(fused.THREADS_ABOVE + 12_345)
    assert torch.equal(fused_row(tensor, threads=3)[0], fused_row(tensor, threads=2)[0])
    assert_same(fused_row(tensor, threads=3)[0], by_hand(tensor[:0]) + masked(tensor))
    assert all(map(torch.equal, fused_row(tensor, threads=2), fused_row(tensor)))


def masked(tensor):
    from whygrad.model import Statistics

    return Statistics(*masked_row(tensor).tolist())


def test_the_histogram_of_a_large_tensor_is_a_sample_that_says_so():
    tensor = noise(1 << 20)
    histogram = fused_row(tensor)[1]
    counted = histogram.sum().item()
    assert counted == (1 << 20) // fused.SHARE
    whole = size_histogram(tensor) / (1 << 20)
    assert (histogram / counted - whole).abs().max() < 0.01


def test_what_has_no_plain_memory_is_left_to_torch():
    freed = torch.ones(8)
    freed.untyped_storage().resize_(0)
    shifted = torch.ones(9)[1:]
    shifted.untyped_storage().resize_(0)
    for tensor in (
        freed,
        shifted,
        noise(4, 4).T,
        torch.ones(3, device="meta"),
        torch.arange(3),
        torch.ones(2, dtype=torch.complex64),
        torch._neg_view(torch.ones(3)),
        torch.ones(1).expand(9),
    ):
        assert address(tensor) == 0
    assert address(torch.nn.Parameter(torch.ones(3)))
    torch.func.vmap(lambda x: [address(x), x][1])(torch.ones(3))


def test_tensors_that_it_cannot_read_are_measured_in_their_place():
    tensors = [noise(5), noise(6, 7).T, torch.arange(4), torch.ones(3, device="meta"), noise(70_000)]
    found = measure(tensors, histograms=True)
    assert list(found.refused) == [3]
    for index in (0, 1, 2, 4):
        assert_same(found.matrix[index], by_hand(tensors[index]))
    assert found.histograms[1].tolist() == size_histogram(tensors[1]).tolist()


@pytest.mark.parametrize("dtype", FLOATS)
def test_updates_are_those_of_the_same_sample_in_torch(dtype):
    shapes = [(3,), (40, 50), (SAMPLE,), (SAMPLE + 1,), (300, 401)]
    before = [noise(*shape, dtype=dtype, seed=seed) for seed, shape in enumerate(shapes)]
    after = [tensor.clone() for tensor in before]
    samples = Samples(after)
    for seed, tensor in enumerate(after):
        tensor[::2] += noise(*tensor[::2].shape, dtype=dtype, seed=seed + 9)
    expected = many_updates([sample_view(t, SAMPLE) for t in before], [sample_view(t, SAMPLE) for t in after])
    for found, row in zip(samples.updates(after), expected, strict=True):
        assert torch.allclose(found, row, rtol=1e-6, atol=1e-9)


def test_a_tensor_that_became_another_has_no_update():
    samples = Samples([noise(4), noise(5), noise(6)])
    matrix = samples.updates([noise(4) + 1, torch.empty(0), noise(6).double()])
    assert matrix[:, 0].tolist() == [4, 0, 0]


@pytest.mark.parametrize("dtype", FLOATS)
def test_rows_with_a_gradient_are_marked_once_and_for_all(dtype):
    gradient = torch.zeros(9, 33, dtype=dtype)
    gradient[2, 32], gradient[5, 0], gradient[7], gradient[8, 1] = 1e-6, -3.0, -0.0, math.nan
    alive, every = mark_rows(gradient, None)
    assert alive.tolist() == rows_with_gradient(gradient).tolist() == [i in (2, 5, 8) for i in range(9)]
    assert not every
    alive, every = mark_rows(torch.ones(9, 33, dtype=dtype), alive)
    assert every
    assert alive.all()


def test_a_glance_tells_numbers_from_zeros():
    assert has_nonzero_bytes(noise(3))
    assert not has_nonzero_bytes(torch.zeros(100))
    assert not has_nonzero_bytes(-torch.zeros(100))
    assert not has_nonzero_bytes(torch.empty(0))


def test_it_can_be_switched_off():
    code = "from whygrad.stats.library import library; print(library())"
    env = {**os.environ, "WHYGRAD_KERNEL": "torch"}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
    assert done.stdout == "None\n"


def test_a_library_of_another_machine_is_as_good_as_none(tmp_path, monkeypatch):
    module = importlib.import_module("whygrad.stats.library")
    (tmp_path / "_kernel.so").write_bytes(b"not for this machine")
    monkeypatch.setattr(module, "FOLDER", tmp_path)
    assert module.library.__wrapped__() is None


def test_other_threads_run_while_it_reads_a_large_tensor():
    tensor = noise(1 << 22)
    ticks, done = [], threading.Event()

    def tick():
        while not done.is_set():
            ticks.append(1)

    thread = threading.Thread(target=tick)
    thread.start()
    for _ in range(20):
        fused.measure(kernel, [tensor], histograms=False)
    done.set()
    thread.join()
    assert len(ticks) > 100
