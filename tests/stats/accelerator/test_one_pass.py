"""The kernel in Triton, in Triton's interpreter: Python that does, block by block, what a GPU would do."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from importlib.util import find_spec

import pytest
import torch

from tests.stats.reference import FLOATS, assert_same, by_hand, noise

if find_spec("triton") is None:
    pytest.skip("Triton is not installed", allow_module_level=True)
os.environ.setdefault("TRITON_INTERPRET", "1")  # read when Triton is imported

from tests.stats.accelerator.fake import accelerators
from whygrad.stats.accelerator import accelerators as accelerators_module
from whygrad.stats.accelerator import one_pass
from whygrad.stats.histogram import size_histogram

SPECIAL = (0.0, -0.0, 1e-25, 1e-45, 1e30, math.nan, math.inf, -math.inf)


def measured(tensors, *, histograms=True):
    vector, layout = one_pass.reduce_in_one_pass(
        tensors, lambda numbers: torch.tensor(numbers, dtype=torch.int64), histograms=histograms
    )
    assert vector.shape == (layout.numel,)
    return layout.matrix(vector), layout.histograms(vector)


def assert_right(tensors):
    matrix, histograms = measured(tensors)
    for tensor, row, counts in zip(tensors, matrix, histograms, strict=True):
        assert_same(row, by_hand(tensor))
        assert torch.equal(counts, size_histogram(tensor))


@pytest.mark.parametrize("dtype", FLOATS)
def test_every_number_of_every_tensor_is_that_of_the_reference(dtype):
    tensors = [noise(count, dtype=dtype, seed=count) for count in (1, 7, 1023, 1024, 1025, 3000)]
    for at, value in enumerate(SPECIAL):
        tensors[-1][31 * at] = value
    assert_right(tensors)


def test_sizes_of_every_power_of_two_fall_into_the_right_bin():
    powers = torch.arange(-149.0, 128)
    assert_right([torch.ldexp(torch.ones(()), powers), -torch.ldexp(torch.ones(()), powers.clamp(-126))])
    assert_right([torch.ldexp(torch.ones((), dtype=torch.float64), torch.arange(-1060.0, 500, dtype=torch.float64))])


def test_a_mix_of_types_and_shapes_is_measured_in_one_call():
    assert_right([
        noise(30, 40).T,
        noise(6, 6).T[::2],
        torch.ones(()),
        torch.empty(0),
        torch.ones(1).expand(5_000),
        noise(500, dtype=torch.bfloat16),
        noise(500, dtype=torch.float64),
    ])  # fmt: skip


def test_a_large_tensor_is_read_in_parts(monkeypatch):
    monkeypatch.setattr(one_pass, "LEAST", 500)
    tensors = [noise(count, seed=count) for count in (499, 500, 501, 2300)]
    tensors[3][::100] = math.nan
    assert_right(tensors)


def test_the_histogram_is_left_out_where_nobody_asked_for_it():
    matrix, histograms = measured([noise(2000)], histograms=False)
    assert histograms is None
    assert_same(matrix[0], by_hand(noise(2000)))


@pytest.mark.parametrize("target", [("cuda", 80, 32), ("cuda", 90, 32), ("hip", "gfx942", 64)], ids=str)
def test_the_kernel_can_be_compiled_for_devices_that_are_not_here(target):
    script = f"""
import torch
from triton import compile
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from whygrad.stats.accelerator import one_pass
for dtype in one_pass.NATIVE:
    constants = one_pass.constants(dtype, histograms=dtype.itemsize > 2)
    signature = dict(table="*i64", sums="*fp64", codes="*fp64", parts="i32") | dict.fromkeys(constants, "constexpr")
    source = ASTSource(one_pass._kernel, signature, constants)
    compile(source, target=GPUTarget(*{target}), options={{"enable_fp_fusion": True}})
"""
    environment = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    subprocess.run([sys.executable, "-W", "error", "-c", script], check=True, env=environment)


def test_it_is_used_only_where_it_is_asked_for(monkeypatch):
    used = []
    real = one_pass.reduce_in_one_pass
    monkeypatch.setattr(one_pass, "reduce_in_one_pass", lambda *a, **k: used.append(1) or real(*a, **k))
    tensors = [noise(300), noise(40, dtype=torch.bfloat16)]
    for value, times in (("", 0), ("torch", 0), ("triton", 1)):
        monkeypatch.setenv("WHYGRAD_KERNEL", value)
        accelerators_module.one_pass.cache_clear()
        found = accelerators()[0].begin(tensors, histograms=True).read()
        assert len(used) == times
        for tensor, row, counts in zip(tensors, found.matrix, found.histograms, strict=True):
            assert_same(row, by_hand(tensor))
            assert torch.equal(counts, size_histogram(tensor))
    accelerators()[0].begin([torch.arange(3)]).read()  # which the kernel cannot read
    assert len(used) == 1
    monkeypatch.undo()
    accelerators_module.one_pass.cache_clear()


def test_what_the_kernel_cannot_read_is_told():
    assert one_pass.can_read([noise(3), noise(3).double()])
    assert not one_pass.can_read([noise(3), torch.arange(3)])
    assert not one_pass.can_read([torch.eye(2).to_sparse()])
