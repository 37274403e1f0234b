"""Where the elements of a tensor lie, for a kernel that reads plain memory."""

from __future__ import annotations

from ctypes import string_at

import torch

TYPES = {torch.float32: 0, torch.float64: 1, torch.float16: 2, torch.bfloat16: 3}  # as the compiled kernel counts them
_GLANCE = 64  # bytes
_PLAIN = frozenset({torch.Tensor, torch.nn.Parameter})


def address(tensor: torch.Tensor) -> int:
    """Return the address of a tensor's elements; 0 where it has none that a kernel could use.

    Such a tensor is a plain CPU tensor of floating point numbers that lie side by side, in memory that was not freed.
    Must be called where `__torch_function__` is disabled.
    """
    if (
        type(tensor) not in _PLAIN
        or tensor.dtype not in TYPES
        or not tensor.is_cpu
        or tensor.layout is not torch.strided
        or tensor.is_nested
        or tensor.is_neg()
    ):
        return 0
    try:
        if not tensor.is_contiguous():
            return 0
        found = tensor.data_ptr()
        freed = tensor.storage_offset() and not tensor.untyped_storage().size()
    except RuntimeError:  # inside torch.func
        return 0
    return 0 if freed else found


def has_nonzero_bytes(tensor: torch.Tensor) -> bool:
    """Return whether the first few elements show that a tensor is not all zeros; False where that takes a closer look.

    Must be called where `__torch_function__` is disabled. A look at the first bytes costs a microsecond; the bytes of
    0.0 and -0.0 are 0 and 0x80.
    """
    where = address(tensor)
    return bool(where) and bool(string_at(where, min(tensor.nbytes, _GLANCE)).strip(b"\0\x80"))
