"""Shapes before and after: axes that move, broadcasting that makes a matrix of two vectors, reshapes that scramble."""

from __future__ import annotations

import math

from whygrad.probe.dataflow.arguments import Call
from whygrad.probe.losses.names import ELEMENTWISE, RESHAPES

Shape = tuple[int, ...]
Axes = tuple[int | None, ...]


# -- axes --------------------------------------------------------------------------------------------------------------


def moved(name: str, call: Call, axes: Axes, before: Shape, after: Shape) -> Axes | None:
    """Return the axes of a result from those of its operand; None where they cannot be followed."""
    if before == after and (name in ELEMENTWISE or name in _STILL or name in RESHAPES):
        return axes
    if name in ELEMENTWISE:
        return _aligned(axes, len(after))
    if name in RESHAPES or name in ("squeeze", "unsqueeze"):
        return _units_aside(axes, before, after)
    if name in ("expand", "expand_as"):
        return _aligned(axes, len(after))
    if name in ("transpose", "swapaxes", "permute", "T", "mT", "t"):
        return _permuted(name, call, axes)
    return axes if name in _STILL and len(before) == len(after) else None


_STILL = frozenset(
    (
        *("contiguous", "clone", "float", "double", "half", "bfloat16", "to", "type", "type_as", "dropout", "detach"),
        *("cpu", "cuda", "data"),
    )
)


def _aligned(axes: Axes, rank: int) -> Axes | None:
    """Return axes after broadcasting, which puts new dimensions in front."""
    return None if rank < len(axes) else (None,) * (rank - len(axes)) + axes


def _units_aside(axes: Axes, before: Shape, after: Shape) -> Axes | None:
    """Return axes of a reshape that adds or removes dimensions of size 1 only."""
    large = [axis for axis, size in zip(axes, before, strict=True) if size != 1]
    if [size for size in before if size != 1] != [size for size in after if size != 1]:
        return None
    following = iter(large)
    return tuple(None if size == 1 else next(following) for size in after)


def _permuted(name: str, call: Call, axes: Axes) -> Axes | None:
    args, kwargs = call.args, call.kwargs
    rank = len(axes)
    order = list(range(rank))
    if name in ("T", "t"):
        order.reverse()
    elif name == "mT":
        order[-2:] = order[:-3:-1]
    elif name == "permute":
        dims = args[1] if len(args) == 2 and isinstance(args[1], tuple | list) else args[1:]
        order = [int(dim) % rank for dim in (dims or kwargs.get("dims", ()))]
    else:
        given = [*args[1:], *kwargs.values()]
        if len(given) != 2 or not all(isinstance(dim, int) for dim in given):
            return None
        one, other = given[0] % rank, given[1] % rank
        order[one], order[other] = order[other], order[one]
    return tuple(axes[index] for index in order) if len(order) == rank else None


# -- broadcasting ------------------------------------------------------------------------------------------------------


def is_outer(one: Shape, other: Shape) -> bool:
    """Return whether broadcasting spreads samples over samples: [N, 1] against [N], [N, 1, H, W] against [N, H, W]."""
    column, flat = (one, other) if len(one) > len(other) else (other, one)
    if len(column) != len(flat) + 1 or not flat:
        return False
    units = (dim for dim, size in enumerate(column) if size == 1 and column[:dim] + column[dim + 1 :] == flat)
    if next(units, None) is None:
        return False
    return _can_broadcast(column, flat) and numel(broadcast(column, flat)) > numel(flat)


def _can_broadcast(one: Shape, other: Shape) -> bool:
    return all(a == b or 1 in (a, b) for a, b in zip(reversed(one), reversed(other), strict=False))


def broadcast(one: Shape, other: Shape) -> Shape:
    """Return the shape that two shapes broadcast to."""
    rank = max(len(one), len(other))
    pairs = zip((1,) * (rank - len(one)) + one, (1,) * (rank - len(other)) + other, strict=True)
    return tuple(b if a == 1 else a for a, b in pairs)


def numel(shape: Shape) -> int:
    """Return the number of elements."""
    return math.prod(shape)


# -- reshapes ----------------------------------------------------------------------------------------------------------


def is_scrambled(before: Shape, after: Shape) -> bool:
    """Return whether a reshape has the sizes of one that moves a dimension, which a reshape cannot do.

    [B, C, L] to [B, L, C], [B, C, H, W] to [B, H * W, C], [B, L, D] to [B, H, L, D / H], [T, B, D] to [B, T * D], and
    so on, with dimensions of sizes that tell them apart.
    """
    if math.prod(before) != math.prod(after) or not math.prod(before):
        return False
    old, new = tuple(s for s in before if s != 1), tuple(s for s in after if s != 1)
    if len(old) < 2 or len(new) < 2 or old == new:
        return False
    if is_class_last(old, new) and old[-1] % old[1] != 0:  # else a split of the last dimension gives that as well
        return True
    old, new = _without_common_ends(old, new)
    if len(old) < 2 and len(new) < 2:
        return False
    if len(before) == len(after) == 2 and max(old) % min(old) == 0:
        return False  # [4, 24] to [24, 4] is what view(-1, 4) gives for any batch
    return _has_moved(old, new) or _has_moved(new, old) or _is_merged(old, new) or _is_merged(new, old)


def _without_common_ends(old: Shape, new: Shape) -> tuple[Shape, Shape]:
    while old and new and old[0] == new[0]:
        old, new = old[1:], new[1:]
    while old and new and old[-1] == new[-1]:
        old, new = old[:-1], new[:-1]
    return old, new


def _has_moved(old: Shape, new: Shape) -> bool:
    """Return whether the first dimension has become the last: (X, *Y) to (*Y, X), Y whole or merged or split."""
    if len(old) < 2 or len(new) < 2 or old[0] != new[-1]:
        return False
    rest, others = old[1:], new[:-1]
    alike = rest == others or len(rest) == 1 or len(others) == 1
    return alike and math.prod(rest) == math.prod(others) and math.prod(rest) != old[0]


def _is_merged(old: Shape, new: Shape) -> bool:
    """Return whether a dimension was merged with another one across a third: (A, B, C) to (B, A * C)."""
    if len(old) != 3 or len(new) != 2:
        return False
    return new == (old[1], old[0] * old[2]) and old[0] != old[1]


def is_class_last(old: Shape, new: Shape) -> bool:
    """Return whether channels are to be last: [B, C, ...] to [B * ..., C], with another size at the end before."""
    if len(old) < 3 or len(new) != 2 or old[1] in (1, old[-1]):
        return False
    return new == (math.prod(old) // old[1], old[1])
