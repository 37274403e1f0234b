"""What each function of torch does to the path of values: told by identity and name, once per function."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from types import GetSetDescriptorType
from typing import Any

import torch

Tensor = torch.Tensor
_BASE = vars(torch._C.TensorBase)
_MAX_KNOWN = 20_000


class Effect(StrEnum):
    """What happens to values in a call."""

    COMPUTE = "compute"
    READ = "read"  # computes nothing: shapes, flags, hooks
    VALUE = "value"  # the value leaves torch
    LOOK = "look"  # the value decides a branch, or is printed
    COPY = "copy"  # a fresh tensor from values or tensors
    DETACH = "detach"
    DATA = "data"
    SET_DATA = "set data"
    SET_REQUIRES_GRAD = "set requires_grad"
    GET_GRAD = "get grad"
    SET_GRAD = "set grad"
    SWITCH = "switch"  # grad mode
    BACKWARD = "backward"
    GRADIENT = "gradient"  # torch.autograd.grad
    # the following are no functions of torch
    LEAF = "leaf"  # a tensor that requires grad, met for the first time
    EXTERNAL = "external"  # an intermediate that was made unseen
    CONSTANT = "constant"  # a tensor without grad that was made unseen
    ALIAS = "alias"  # a tensor whose memory was written through another tensor
    CUSTOM = "custom"  # an autograd.Function
    OPAQUE = "opaque"  # a module that runs unseen


class Takes(StrEnum):
    """Which arguments a result's value depends on."""

    ALL = "all"
    FIRST = "first"  # of the others, only the type or shape
    NOT_FIRST = "not first"


@dataclass(frozen=True, slots=True, eq=False)
class Operation:
    """One function, classified."""

    name: str
    effect: Effect = Effect.COMPUTE
    writes: bool = False  # into its first argument, or `out`
    overwrites: bool = False  # nothing of the old value is left
    inplace_option: bool = False  # takes `inplace`
    flat: bool = False  # its derivative is zero everywhere
    takes: Takes = Takes.ALL
    selects: bool = False  # its result holds a part of the value
    leaves_empty: bool = False  # the result holds nothing yet: what fills it may be unseen
    foreach: bool = False  # takes lists of tensors and treats them one by one


LEAF = Operation("parameter", Effect.LEAF)
EXTERNAL = Operation("external", Effect.EXTERNAL)
CONSTANT = Operation("constant", Effect.CONSTANT)
ALIAS = Operation("write", Effect.ALIAS)
PARAMETER = Operation("nn.Parameter", Effect.COPY)
FRESH_LEAF = Operation("requires_grad", Effect.COPY)
FREEZE = Operation("requires_grad", Effect.SET_REQUIRES_GRAD)
FROM_NUMPY = Operation("from_numpy", Effect.COPY)

_VIEWS = ("real", "imag", "T", "mT", "H", "mH")  # attributes that compute
_CALLS = (
    *("size", "dim", "ndimension", "numel", "nelement", "stride", "storage_offset", "is_contiguous", "element_size"),
    *("data_ptr", "is_floating_point", "is_complex", "is_signed", "untyped_storage", "storage", "_typed_storage"),
    *("__len__", "get_device", "is_pinned", "_is_view", "register_hook", "register_post_accumulate_grad_hook"),
    *("retain_grad", "__hash__", "is_inference", "is_shared", "is_same_size", "has_names", "dim_order", "is_conj"),
    *("is_neg", "is_coalesced", "sparse_dim", "dense_dim", "_nnz", "__reduce_ex__", "__dir__", "is_set_to"),
)
_FREE_READS = ("is_tensor", "is_floating_point", "is_complex", "numel", "result_type", "can_cast", "promote_types")
_VALUES = ("item", "tolist", "numpy", "__array__", "__float__", "__int__", "__index__", "__complex__", "__dlpack__")
_LOOKS = ("__bool__", "__contains__", "__format__", "__repr__", "equal", "allclose", "is_nonzero")
_COPIES = ("tensor", "as_tensor", "asarray", "scalar_tensor", "full", "full_like", "new_tensor", "new_full")
_FLAT = (*("round", "floor", "ceil", "trunc", "fix", "sign", "sgn", "bernoulli", "poisson", "normal"),)
_WRITING_DUNDERS = (
    *("__setitem__", "__iadd__", "__isub__", "__imul__", "__itruediv__", "__ifloordiv__", "__imod__", "__ipow__"),
    *("__iand__", "__ior__", "__ixor__", "__ilshift__", "__irshift__", "__imatmul__"),
)
_OVERWRITING = (
    *("copy_", "fill_", "zero_", "normal_", "uniform_", "bernoulli_", "exponential_", "random_", "set_", "log_normal_"),
    *("cauchy_", "geometric_", "_foreach_copy_", "_foreach_zero_", "eye_", "orthogonal_"),
)
_FIRST_ONLY = ("type_as", "expand_as", "view_as", "reshape_as", "resize_as_", "is_same_size")
_SELECTING = (
    *("__getitem__", "select", "narrow", "index_select", "gather", "take", "take_along_dim", "masked_select", "chunk"),
    *("split", "unbind", "tensor_split", "where", "masked_fill", "max", "min", "topk", "amax", "amin", "diagonal"),
)
_SWITCHES = ("_set_grad_enabled",)


class Operations:
    """The classification of every function seen so far."""

    def __init__(self) -> None:
        self._known: dict[Any, Operation] = dict(_BY_IDENTITY)

    def of(self, function: Callable[..., Any]) -> Operation:
        """Return what a function does."""
        try:
            known = self._known.get(function)
        except TypeError:  # it can't be hashed
            return classified(function)
        if known is None:
            if len(self._known) > _MAX_KNOWN:
                self._known = dict(_BY_IDENTITY)
            known = self._known[function] = classified(function)
        return known


def classified(function: Callable[..., Any]) -> Operation:
    """Return what a function does, from its name and where it comes from."""
    name = str(getattr(function, "__name__", None) or function)
    if inspect.unwrap(function) is _GRADIENT:
        return Operation("autograd.grad", Effect.GRADIENT)
    if name == "backward":
        return Operation(name, Effect.BACKWARD)
    if name in _SWITCHES:
        return Operation(name, Effect.SWITCH)
    if name in _CALLS:  # a method that the probe has wrapped
        return Operation("read", Effect.READ)
    if name in ("__get__", "__set__", "__delete__"):  # an attribute that is not told apart above
        return Operation(name, Effect.READ)
    for names, effect in ((_VALUES, Effect.VALUE), (_LOOKS, Effect.LOOK), (_COPIES, Effect.COPY)):
        if name in names:
            return Operation(name.strip("_"), effect, takes=_takes(name))
    if name == "__deepcopy__":
        return Operation("deepcopy", Effect.COPY, takes=Takes.FIRST)  # the memo holds the result
    if name in ("detach", "detach_"):
        return Operation(name, Effect.DETACH, writes=name == "detach_")
    return _computing(function, name)


def _computing(function: Callable[..., Any], name: str) -> Operation:
    writes = name in _WRITING_DUNDERS or (name.endswith("_") and not name.endswith("__"))
    return Operation(
        name.strip("_") if name.startswith("__") else name,
        writes=writes,
        overwrites=name in _OVERWRITING,
        inplace_option=_takes_inplace(function),
        flat=name.removesuffix("_") in _FLAT or name in _FLAT,
        takes=_takes(name),
        selects=name in _SELECTING,
        leaves_empty="empty" in name,
        foreach=name.startswith("_foreach_"),
    )


def _takes(name: str) -> Takes:
    if name in _FIRST_ONLY:
        return Takes.FIRST
    return Takes.NOT_FIRST if name.endswith("_like") or name.startswith("new_") else Takes.ALL


def _takes_inplace(function: Callable[..., Any]) -> bool:
    code = getattr(inspect.unwrap(function), "__code__", None)
    return code is not None and "inplace" in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]


def _present(owner: Any, names: tuple[str, ...]) -> list[Any]:
    return [found for name in names if (found := getattr(owner, name, None)) is not None]


_GRADIENT = inspect.unwrap(torch.autograd.grad)
_BY_IDENTITY: dict[Any, Operation] = {
    **{
        attribute.__get__: Operation(name, Effect.COMPUTE if name in _VIEWS else Effect.READ)
        for name, attribute in _BASE.items()
        if isinstance(attribute, GetSetDescriptorType)
    },
    **dict.fromkeys(_present(Tensor, _CALLS) + _present(torch, _FREE_READS), Operation("read", Effect.READ)),
    _BASE["data"].__get__: Operation("data", Effect.DATA),
    _BASE["data"].__set__: Operation("data=", Effect.SET_DATA, writes=True),
    _BASE["requires_grad"].__set__: FREEZE,
    Tensor.requires_grad_: FREEZE,
    _BASE["grad"].__get__: Operation("grad", Effect.GET_GRAD),
    _BASE["grad"].__set__: Operation("grad=", Effect.SET_GRAD),
    _BASE["grad"].__delete__: Operation("del grad", Effect.SET_GRAD),
}
