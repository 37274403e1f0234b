"""Tensors as the bytes that a run file stores: little-endian, row by row."""

from __future__ import annotations

import ctypes
import sys

import torch


def pack(matrix: torch.Tensor) -> bytes:
    """Return a matrix of statistics as float64 bytes."""
    return _bytes(matrix.to("cpu", torch.float64))


def pack_counts(counts: torch.Tensor) -> bytes:
    """Return counts below 2**31 as uint32 bytes, which int32 shares."""
    return _bytes(counts.to("cpu", torch.int32))


def _bytes(tensor: torch.Tensor) -> bytes:
    flat = tensor.detach().contiguous()
    if sys.byteorder == "big":
        flat = flat.view(torch.uint8).view(-1, flat.element_size()).flip(1)
    return ctypes.string_at(flat.data_ptr(), flat.numel() * flat.element_size())
