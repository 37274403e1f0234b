"""Which tensors can be measured, and where their numbers are."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import NamedTuple, ParamSpec, TypeVar

import torch

from whygrad.stats.addresses import address

P = ParamSpec("P")
T = TypeVar("T")

_DTYPES = frozenset(
    {
        torch.float64,
        torch.float32,
        torch.float16,
        torch.bfloat16,
        torch.float8_e4m3fn,
        torch.float8_e4m3fnuz,
        torch.float8_e5m2,
        torch.float8_e5m2fnuz,
        torch.int64,
        torch.int32,
        torch.int16,
        torch.int8,
        torch.uint8,
        torch.bool,
    }
)
_LAYOUTS = frozenset(
    {torch.strided, torch.sparse_coo, torch.sparse_csr, torch.sparse_csc, torch.sparse_bsr, torch.sparse_bsc}
)


class Elements(NamedTuple):
    """The elements of a tensor, without those that need not be read one by one."""

    values: torch.Tensor  # 1-D, strided, in memory order where that is possible without a copy
    repeats: int  # how often each of `values` stands in the tensor: more than once where it was expanded
    implicit_zeros: int  # elements that a sparse layout does not store


def untracked(function: Callable[P, T]) -> Callable[P, T]:
    """Run a kernel outside autograd, and out of sight of the modes of the tracer and of the program.

    `TorchFunctionMode`s are shut out first: they would see gradients being switched off. `TorchDispatchMode`s may count
    calls, or turn every tensor into a fake one.
    """

    @wraps(function)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> T:
        with torch._C.DisableTorchFunction(), torch._C._DisableTorchDispatch():
            if not torch.is_grad_enabled():
                return function(*args, **kwargs)
            torch._C._set_grad_enabled(False)  # `torch.no_grad` costs more than many a kernel
            try:
                return function(*args, **kwargs)
            finally:
                torch._C._set_grad_enabled(True)

    return wrapper


def local_tensor(tensor: torch.Tensor) -> torch.Tensor:
    """Return this rank's part of a DTensor, any other tensor as it is: kernels never communicate."""
    local = getattr(tensor, "_local_tensor", None)
    return local if isinstance(local, torch.Tensor) else tensor


def refusal(tensor: torch.Tensor) -> str | None:
    """Return why a tensor cannot be measured, as a sentence for a note; None if it can be."""
    with torch._C.DisableTorchFunction():
        kind = None if address(tensor) else _unmeasured_kind(local_tensor(tensor))
    return None if kind is None else f"{kind} are not measured"


def is_supported(tensor: torch.Tensor) -> bool:
    """Return whether a tensor can be measured."""
    return refusal(tensor) is None


def elements(tensor: torch.Tensor) -> Elements:
    """Return the elements of a supported tensor, which must be local."""
    if tensor.layout is torch.strided:
        if tensor.is_contiguous():
            return Elements(tensor.view(-1), 1, 0)
        once = _without_expansion(tensor)
        return Elements(_in_memory_order(once).reshape(-1), tensor.numel() // once.numel(), 0)
    stored = tensor.coalesce() if tensor.layout is torch.sparse_coo else tensor
    values = stored.values().reshape(-1)
    return Elements(values, 1, tensor.numel() - values.numel())


def _unmeasured_kind(tensor: torch.Tensor) -> str | None:
    if torch._C._functorch.is_functorch_wrapped_tensor(tensor):
        return "tensors inside torch.func transforms"
    if tensor.is_nested:
        return "nested tensors"
    if type(tensor).__torch_dispatch__ is not torch.Tensor.__torch_dispatch__:
        return f"{type(tensor).__name__} tensors"
    if tensor.dtype not in _DTYPES:
        return f"{str(tensor.dtype).removeprefix('torch.')} tensors"
    if tensor.layout not in _LAYOUTS:
        return f"tensors of layout {str(tensor.layout).removeprefix('torch.')}"
    if tensor.is_meta:
        return "meta tensors"
    # Reading freed memory (FSDP empties storages between uses) ends the process, not the call.
    if tensor.layout is torch.strided and tensor.numel() and not tensor.untyped_storage().size():
        return "tensors whose storage was freed"
    return None


def _without_expansion(tensor: torch.Tensor) -> torch.Tensor:
    """Return the tensor with expanded dimensions cut to size 1: `out.sum().backward()` expands a single number."""
    for dim, stride in enumerate(tensor.stride()):
        if stride == 0:
            tensor = tensor.narrow(dim, 0, 1)
    return tensor


def _in_memory_order(tensor: torch.Tensor) -> torch.Tensor:
    """Return the tensor with its dimensions in the order of memory, so that flattening copies only what has gaps."""
    return tensor.permute(sorted(range(tensor.dim()), key=tensor.stride, reverse=True))
