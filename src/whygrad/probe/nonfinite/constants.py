"""Where the constants of a graph come from: values without a gradient, such as targets, weights and advantages.

Autograd keeps no graph of them. In some of the watched steps each is followed back to the operations that can make NaN
or Inf out of finite numbers, so that in a later step, where only its value is seen, the line can still be told.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch.multiprocessing.reductions import StorageWeakRef

from whygrad.probe.dataflow.arguments import gather
from whygrad.probe.nonfinite.calls import Made

MAX_FOLLOWED = 20_000
MAX_MADE = 8  # operations behind one constant; more are as good as none

_weakly: Any = StorageWeakRef  # torch leaves it untyped
_Makers = frozenset[Made]
_NONE: _Makers = frozenset()
_RISKY = frozenset(
    {
        *("log", "log2", "log10", "log1p", "logit", "xlogy", "sqrt", "rsqrt", "pow", "rpow", "ipow", "float_power"),
        *("truediv", "rtruediv", "itruediv", "div", "divide", "true_divide", "reciprocal", "std", "var", "std_mean"),
        *("var_mean", "exp", "exp2", "expm1", "softmax", "log_softmax", "acos", "asin", "acosh", "atanh", "arccos"),
        *("arcsin", "log_", "sqrt_", "div_", "exp_", "pow_", "reciprocal_", "cov", "corrcoef", "inverse", "inv"),
        *("sinh", "cosh", "erfinv", "fmod", "remainder", "mod", "normalize", "prod", "cumprod", "tan"),
    }
)


class Constants:
    """What is known of the values without gradient."""

    def __init__(self) -> None:
        self._makers: dict[int, tuple[Any, _Makers]] = {}  # storage -> weak reference to it, what is behind it
        self._taken: dict[Made, set[Made]] = {}  # call that made nodes -> what is behind the constants it took

    def call(self, made: Made, given: Any, result: Any, *, with_graph: bool) -> None:
        """Follow a call; `with_graph` says that it made nodes."""
        inputs: list[torch.Tensor] = []
        gather(given, inputs)
        behind = self._behind(tensor for tensor in inputs if not tensor.requires_grad)
        if with_graph:
            if made in self._taken or (behind and len(self._taken) < MAX_FOLLOWED):
                self._taken.setdefault(made, set()).update(behind)
            return
        if made.operation in _RISKY:
            behind |= {made}
        results: list[torch.Tensor] = []
        gather(inputs[:1] if made.operation == "setitem" else result, results)
        for tensor in results:
            self._put(tensor, behind if tensor.is_floating_point() else _NONE)  # whole numbers are finite

    def of(self, made: Made) -> tuple[Made, ...]:
        """Return the operations behind the constants that a call has taken; none where they are too many."""
        found = self._taken.get(made, ())
        return tuple(found) if len(found) <= MAX_MADE else ()

    def _behind(self, tensors: Iterable[torch.Tensor]) -> _Makers:
        found: _Makers = _NONE
        for tensor in tensors:
            known = self._makers.get(_key(tensor))
            if known is not None and not known[0].expired():
                found |= known[1]
        return found

    def _put(self, tensor: torch.Tensor, behind: _Makers) -> None:
        key = _key(tensor)
        if not behind:
            self._makers.pop(key, None)
            return
        if len(self._makers) >= MAX_FOLLOWED:
            self._makers = {k: known for k, known in self._makers.items() if not known[0].expired()}
        if key and len(self._makers) < MAX_FOLLOWED:
            self._makers[key] = (_weakly(tensor.untyped_storage()), behind)


def _key(tensor: torch.Tensor) -> int:
    try:
        return int(tensor.untyped_storage()._cdata)
    except (RuntimeError, NotImplementedError):
        return 0
