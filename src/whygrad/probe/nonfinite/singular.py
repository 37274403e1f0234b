"""Nodes whose derivative is not finite at the values they saved: what a backward pass will run into.

Asked before each pass that is not watched node by node. It costs a look at the kinds of the nodes, and at the values of
the few whose kind can be singular. Norms, distances, spreads and atan2 are not among them: torch gives them the slope 0
where they have none.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from whygrad.probe.nonfinite.finite import Finite
from whygrad.probe.nonfinite.values import Values, kind_of

_Test = Callable[[Values, Finite], bool]


def is_risky(node: Any) -> bool:
    """Return whether the derivative of such nodes can be infinite."""
    return kind_of(node) in _TESTS


def is_singular(node: Any, finite: Finite) -> bool:
    """Return whether the derivative of a risky node is not finite at what it saved, as far as that can be read."""
    return _TESTS[kind_of(node)](Values(node, finite), finite)


def _any(mask: torch.Tensor) -> bool:
    return bool(mask.any())


def _zero(name: str) -> _Test:
    def test(values: Values, _finite: Finite) -> bool:
        tensor = values.get(name)
        return tensor is not None and _any(tensor == 0)

    return test


def _beyond_one(values: Values, _finite: Finite) -> bool:
    tensor = values.get("self")
    return tensor is not None and not tensor.is_complex() and _any(tensor.abs() >= 1)


def _zero_or_one(values: Values, _finite: Finite) -> bool:
    tensor = values.get("self")
    return tensor is not None and _any((tensor <= 0) | (tensor >= 1))


def _power(values: Values, finite: Finite) -> bool:
    base, exponent = values.get("self"), values.option("exponent")
    if base is None or (isinstance(exponent, int | float) and exponent >= 1):
        return _broken(values, finite)
    tensor = values.get("exponent")
    at_zero = base == 0
    return _any(at_zero if tensor is None else at_zero & (tensor < 1)) or _broken(values, finite)


def _broken(values: Values, finite: Finite) -> bool:
    return any(finite.is_broken(tensor) for tensor in (*values.inputs.values(), *values.results.values()))


def _both_zero(values: Values, _finite: Finite) -> bool:
    first, second = values.get("self"), values.get("other")
    return first is not None and second is not None and _any((first == 0) & (second == 0))


def _ties(name: str) -> _Test:
    def test(values: Values, _finite: Finite) -> bool:
        tensor = values.get(name)
        if tensor is None or tensor.is_complex() or tensor.shape[-1] < 2:
            return False
        return _any(tensor.sort(dim=-1).values.diff(dim=-1) == 0)

    return test


_TESTS: dict[str, _Test] = {
    "Sqrt": _zero("result"),
    "Pow": _power,
    "Log": _zero("self"),
    "Log2": _zero("self"),
    "Log10": _zero("self"),
    "Div": _zero("other"),
    "Hypot": _zero("result"),
    "Xlogy": _both_zero,
    "Acos": _beyond_one,
    "Asin": _beyond_one,
    "Acosh": _beyond_one,
    "Atanh": _beyond_one,
    "Erfinv": _beyond_one,
    "Rsqrt": _broken,
    "Reciprocal": _broken,
    "Exp": _broken,
    "Exp2": _broken,
    "Mul": _broken,
    "Tan": _broken,
    "SpecialEntr": _zero("self"),
    "Logit": _zero_or_one,
    "Prod": _broken,
    "LinalgSvd": _ties("S"),
    "LinalgEigh": _ties("eigenvalues"),
}
