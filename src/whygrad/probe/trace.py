"""The tracer: a TorchFunctionMode that sees every Python-level torch call of the first steps.

It notes which parameters are used and where, where `requires_grad` is switched off, where tensors are made, and who
reads `.grad` of an intermediate. It is taken off after the first steps, and then costs nothing.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch._C import _len_torch_function_stack, _pop_torch_function_stack, _push_on_torch_function_stack
from torch.overrides import TorchFunctionMode

from whygrad.probe.guard import Guard
from whygrad.probe.patches import drop_own_frame
from whygrad.probe.source import Site, UserCode

_GET_GRAD: Any = vars(torch._C.TensorBase)["grad"].__get__
_SET_REQUIRES_GRAD: Any = vars(torch._C.TensorBase)["requires_grad"].__set__
_FLAT_DEPTH = 3
_FLAT_ITEMS = 4096

# In eval mode these take a fused path that gives other bits; torch leaves it when any torch function mode is on.
_FUSED_IN_EVAL = (nn.TransformerEncoder, nn.TransformerEncoderLayer, nn.MultiheadAttention)


# Attribute reads and bookkeeping calls: they compute nothing.
_READS = (
    *("shape", "dtype", "device", "requires_grad", "is_leaf", "grad_fn", "layout", "ndim", "is_cuda", "is_sparse"),
    *("is_quantized", "is_meta", "_version", "_base", "output_nr", "itemsize", "nbytes", "is_nested"),
    *("is_cpu", "retains_grad", "_backward_hooks"),
)
_CALLS = (
    *("size", "dim", "numel", "nelement", "stride", "storage_offset", "is_contiguous", "element_size", "data_ptr"),
    *("is_floating_point", "is_complex", "untyped_storage", "__len__", "get_device", "is_pinned", "_is_view"),
    *("register_hook", "register_post_accumulate_grad_hook", "retain_grad", "__hash__", "is_inference"),
    *("__deepcopy__", "__reduce_ex__"),
)
_SILENT: frozenset[Any] = frozenset(
    [vars(torch._C.TensorBase)[name].__get__ for name in _READS] + [getattr(torch.Tensor, name) for name in _CALLS]
)


@dataclass(slots=True)
class Use:
    """How often a leaf was an operation's input in traced steps, and where last."""

    ref: weakref.ref[torch.Tensor]
    count: int
    site: Site | None


class Tracer(TorchFunctionMode):
    """Watches torch calls between `switch_on` and `switch_off`."""

    def __init__(
        self,
        user: UserCode,
        guard: Guard,
        *,
        in_module: Callable[[], bool],
        on_intermediate_grad_read: Callable[[torch.Tensor, Site | None], None],
        on_freeze: Callable[[torch.Tensor, Site | None], None],
        on_write: Callable[[torch.Tensor, Site | None], None],
    ) -> None:
        super().__init__()
        self.active = False
        self.paused = False
        self.uses: dict[int, Use] = {}
        self.made: dict[int, tuple[weakref.ref[torch.Tensor], Site | None]] = {}
        self._user = user
        self._guard = guard
        self._in_module = in_module
        self._on_grad_read = on_intermediate_grad_read
        self._on_freeze = on_freeze
        self._on_write = on_write
        self._note = guard.wrap("tracer", self._observe)

    def switch_on(self) -> None:
        """Start watching this thread's torch calls."""
        if self.active:
            return
        self.active = True
        _at_bottom(self)

    def switch_off(self) -> None:
        """Stop watching, and forget where tensors were made."""
        if not self.active:
            return
        self.active = False
        modes = [_pop_torch_function_stack() for _ in range(_len_torch_function_stack())]
        for mode in reversed(modes):
            if mode is not self:
                _push_on_torch_function_stack(mode)
        self.made.clear()

    def run(self, original: Callable[..., Any], module: nn.Module, args: tuple[Any, ...], kwargs: Any) -> Any:
        """Call a module, without the tracer where its presence would change the result."""
        if not (self.active and isinstance(module, _FUSED_IN_EVAL) and not module.training):
            try:
                return original(module, *args, **kwargs)
            except BaseException as error:
                drop_own_frame(error)
                raise
        self.switch_off()
        try:
            return original(module, *args, **kwargs)
        except BaseException as error:
            drop_own_frame(error)
            raise
        finally:
            self.switch_on()

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        try:
            result = func(*args, **(kwargs or {}))
        except BaseException as error:
            drop_own_frame(error)
            raise
        if not (self.paused or func in _SILENT or self._guard.inside or torch.compiler.is_compiling()):
            self._note(func, args, kwargs or {}, result)
        return result

    def made_at(self, tensor: torch.Tensor) -> Site | None:
        """Return the line that made an intermediate in the current step, if it was seen."""
        entry = self.made.get(id(tensor))
        return entry[1] if entry is not None and entry[0]() is tensor else None

    def release(self, tensor: torch.Tensor) -> None:
        """Drop the weak references to a tensor."""
        self.uses.pop(id(tensor), None)
        self.made.pop(id(tensor), None)

    def _observe(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> None:
        if func == _GET_GRAD:
            globals().pop(
                "__warningregistry__", None
            )  # torch's warning is about the program's line: never silence it here
            if result is None and _is_intermediate(args[0]):
                self._on_grad_read(args[0], self._here())
            return
        if func == _SET_REQUIRES_GRAD or func is torch.Tensor.requires_grad_:
            if not args[0].requires_grad:
                self._on_freeze(args[0], self._here())
            return
        if _writes(func):
            target = args[0] if args else next(iter(kwargs.values()), None)  # nn.init hands its tensor over by name
            if isinstance(target, nn.Parameter):
                self._on_write(target, self._here())
        outputs = [tensor for tensor in _flat(result) if _is_intermediate(tensor)]
        leaves = [tensor for tensor in _flat((args, kwargs)) if tensor.requires_grad and not _is_intermediate(tensor)]
        if not outputs and not (leaves and self._in_module()):
            return
        here = self._here()
        for leaf in leaves:
            self._count_use(leaf, here)
        for tensor in outputs:
            self.made[id(tensor)] = (weakref.ref(tensor), here)

    def _here(self) -> Site | None:
        return self._user.capture()

    def _count_use(self, leaf: torch.Tensor, site: Site | None) -> None:
        use = self.uses.get(id(leaf))
        if use is None or use.ref() is not leaf:
            use = self.uses[id(leaf)] = Use(weakref.ref(leaf), 0, site)
        use.count += 1
        use.site = site


def _writes(func: Any) -> bool:
    name = getattr(func, "__name__", "")
    return name == "__setitem__" or (name.endswith("_") and not name.endswith("__"))


def _is_intermediate(tensor: torch.Tensor) -> bool:
    try:
        return not tensor.is_leaf
    except RuntimeError:  # a view made under no_grad whose base was written since: autograd refuses to look at it
        return False


def _flat(value: Any, depth: int = _FLAT_DEPTH) -> Iterator[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        yield value
    elif depth and isinstance(value, tuple | list):
        for item in value[:_FLAT_ITEMS]:
            yield from _flat(item, depth - 1)
    elif depth and isinstance(value, dict):
        for item in value.values():
            yield from _flat(item, depth - 1)


def _at_bottom(mode: TorchFunctionMode) -> None:
    """Put a mode under the user's own.

    Every `__exit__` pops the top of the stack, whatever it is: a mode pushed inside a user's `with` would be popped in
    place of the user's. `torch.set_default_device` insists on being the bottom itself, so it stays below.
    """
    modes = [_pop_torch_function_stack() for _ in range(_len_torch_function_stack())][::-1]
    context = getattr(getattr(torch, "_GLOBAL_DEVICE_CONTEXT", None), "device_context", None)
    position = 1 if modes and context is not None and modes[0] is context else 0
    modes.insert(position, mode)
    for each in modes:
        _push_on_torch_function_stack(each)
