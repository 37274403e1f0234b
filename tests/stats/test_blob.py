from __future__ import annotations

import struct
import sys

import torch

from tests.stats.reference import noise
from whygrad.stats.blob import pack, pack_counts


def test_a_matrix_is_little_endian_float64_row_by_row():
    matrix = torch.tensor([[1.0, 2.5], [-3.0, 1e300]], dtype=torch.float64)
    assert pack(matrix) == struct.pack("<4d", 1.0, 2.5, -3.0, 1e300)


def test_a_transposed_matrix_is_packed_as_it_reads():
    matrix = torch.tensor([[1.0, 2.0], [3.0, 4.0]]).T
    assert pack(matrix) == struct.pack("<4d", 1.0, 3.0, 2.0, 4.0)


def test_counts_are_little_endian_uint32():
    assert pack_counts(torch.tensor([[1, 2**31 - 1]], dtype=torch.int32)) == struct.pack("<2I", 1, 2**31 - 1)


def test_nothing_is_no_bytes():
    assert pack(torch.empty(0, 8)) == b""


def test_bytes_are_turned_round_on_a_big_endian_machine(monkeypatch):
    matrix = noise(2, 8).double()
    native = pack(matrix)
    monkeypatch.setattr(sys, "byteorder", "big")
    assert pack(matrix) == struct.pack(">16d", *struct.unpack("<16d", native))
