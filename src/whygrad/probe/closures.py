"""Steps that call back: `optimizer.step(closure)` runs forward and backward inside, as Lightning does and L-BFGS needs.

The closure is wrapped for the duration of the step, so that what it computes is told from what the optimizer computes,
and so that gradients and weights are read in between, as they are before any other step.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from whygrad.probe.patches import drop_own_frame

Arguments = tuple[tuple[Any, ...], dict[str, Any]]  # of `step`, the optimizer first


def closure_of(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Callable[..., Any] | None:
    """Return the closure among the arguments of a step."""
    closure = args[1] if len(args) > 1 else kwargs.get("closure")
    return closure if callable(closure) else None


def with_closure(
    args: tuple[Any, ...], kwargs: dict[str, Any], before: Callable[[], None], after: Callable[[], None]
) -> Arguments:
    """Return the arguments of a step with `before()` and `after()` around each call of its closure.

    Neither may raise.
    """
    closure = closure_of(args, kwargs)
    if closure is None:
        return args, kwargs

    @functools.wraps(closure, updated=())
    def watched(*inner: Any, **named: Any) -> Any:
        before()
        try:
            result = closure(*inner, **named)
        except BaseException as error:
            drop_own_frame(error)
            raise
        after()
        return result

    if len(args) > 1:
        return (args[0], watched, *args[2:]), kwargs
    return args, {**kwargs, "closure": watched}
