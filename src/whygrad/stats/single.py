"""Statistics of one tensor.

Two kernels give the same numbers: `masked_row`, the reference, on any device and without waiting for it, and
`host_row`, which reads a CPU tensor in blocks that stay in its cache, several times faster.

The host kernel adds up the blocks in float64. Inside a large block it adds in float32, with a relative error below 1e-6
of `sum_abs` and `sum_squares`, unless that would not do: squares that vanish or overflow, or a spread that drowns in
the mean. It sees this in the numbers themselves and then reads the block again in float64.
"""

# N = elements, S = statistics

from __future__ import annotations

import math
from array import array
from collections.abc import Sequence
from itertools import chain
from operator import mul

import torch

from whygrad.model import STATISTICS
from whygrad.stats.segments import COUNT, MAX_ABS, SUM_ABS, ZEROS
from whygrad.stats.support import elements, local_tensor, refusal, untracked

Row = Sequence[float]
"""The statistics of one tensor, in the order of `model.STATISTICS`."""

BLOCK = 65_536  # elements: with its scratch 512 kB, which the level 2 cache of a core holds
_DEVICE_BLOCK = 16_777_216  # elements: bounds the temporaries of the masked kernel
_LIST_UP_TO = 128  # elements
_WIDE_UP_TO = 4_096  # elements: so few cost next to nothing in float64
NOTHING: Row = (0.0,) * len(STATISTICS)  # the row of a tensor of which no element was looked at
NARROW = frozenset({torch.float32, torch.float16, torch.bfloat16})  # float32 holds every value of these
_MASKABLE = NARROW | {torch.float64}


@untracked
def single_statistics(tensor: torch.Tensor) -> torch.Tensor:
    """Return `kernel.tensor_statistics` by torch alone."""
    local = local_tensor(tensor)
    row = NOTHING if refusal(local) is not None else local_row(local)
    return row if isinstance(row, torch.Tensor) else as_matrix([row]).view(-1)


def as_matrix(rows: Sequence[Row]) -> torch.Tensor:
    """Return rows as float64 [T, S] on the CPU."""
    if not rows:
        return torch.zeros(0, len(STATISTICS), dtype=torch.float64, device="cpu")
    numbers = array("d", chain.from_iterable(rows))  # four times as fast as a tensor from tuples
    return torch.frombuffer(numbers, dtype=torch.float64).view(len(rows), -1)


def local_row(tensor: torch.Tensor) -> Row | torch.Tensor:
    """Return the statistics of a supported, local tensor: numbers for a CPU tensor, else float64 [S] on its device."""
    part = elements(tensor)
    if not part.values.is_cpu:
        return _completed(masked_row(part.values), part.repeats, part.implicit_zeros)
    row = host_row(part.values)
    if part.repeats == 1 and not part.implicit_zeros:
        return row
    return _as_list(_completed(as_matrix([row]).view(-1), part.repeats, part.implicit_zeros))


def host_row(values: torch.Tensor) -> Row:
    """Return the statistics of a flat CPU tensor."""
    if values.numel() <= BLOCK:
        return _block_row(values) if values.numel() else NOTHING
    columns = list(zip(*map(_block_row, torch.split(values, BLOCK)), strict=True))
    row = [sum(column) for column in columns]
    row[MAX_ABS] = max(columns[MAX_ABS])
    return row


def masked_row(values: torch.Tensor) -> torch.Tensor:
    """Return the statistics of a flat tensor as float64 [S] on its device, without a look at the values in between."""
    rows = torch.stack([_masked_block(block) for block in torch.split(values, _DEVICE_BLOCK)])
    row = rows.sum(0)
    row[MAX_ABS] = rows[:, MAX_ABS].amax()
    return row


def is_finite(row: Row) -> bool:
    """Return whether all elements behind a row of sums were finite, from the sum of their sizes.

    That sum is there anyway; `isfinite` on the elements costs more than all sums together.
    """
    return math.isfinite(row[SUM_ABS])


def _completed(row: torch.Tensor, repeats: int, implicit_zeros: int) -> torch.Tensor:
    """Count elements that were not read: those of an expanded tensor, and the zeros of a sparse one."""
    complete = row * repeats
    complete[MAX_ABS] = row[MAX_ABS]
    complete[COUNT] += implicit_zeros
    complete[ZEROS] += implicit_zeros
    return complete


def _as_list(row: torch.Tensor) -> Row:
    numbers: list[float] = row.tolist()
    return numbers


def _block_row(values: torch.Tensor) -> Row:
    """Return the statistics of a block of at least one element."""
    count = values.numel()
    if count <= _LIST_UP_TO:
        row = _from_list(values)
    elif count <= _WIDE_UP_TO or values.dtype not in NARROW:
        row = _in_passes(values, torch.float64)
    else:
        row = _in_passes(values, torch.float32)
        if not _float32_will_do(row):
            row = _in_passes(values, torch.float64)
    return row if is_finite(row) else _as_list(masked_row(values))


def _float32_will_do(row: Row) -> bool:
    """Return whether nothing vanished, overflowed or drowned in a block that was added in float32.

    Squares of elements below 2**-63 are subnormal; next to the square of 2**-40 even a full block of them is nothing.
    With a mean of more than 11 times the spread, the spread computed from the sums would lose two digits more.
    """
    count, total, squares, _, largest, *_ = row
    in_range = 2.0**-40 < largest < 2.0**50 or largest == 0
    return in_range and total * total * 129 <= squares * count * 128


def _from_list(values: torch.Tensor) -> Row:
    """Return the statistics of a few elements: a call into torch costs as much as a dozen of them in Python."""
    numbers = values.tolist()
    sizes = [abs(number) for number in numbers]
    squares = sum(map(mul, numbers, numbers))
    return (len(numbers), sum(numbers), squares, sum(sizes), max(sizes), numbers.count(0), 0.0, 0.0)


def _in_passes(values: torch.Tensor, dtype: torch.dtype) -> Row:
    """Return the statistics of a block, added in `dtype`."""
    exact = values.to(dtype)
    total = exact.sum().item()
    scratch = exact * exact
    squares = scratch.sum().item()  # pairwise, where `dot` adds one after another and drifts
    sizes = torch.abs(exact, out=scratch)
    zeros = 0 if sizes.amin().item() > 0 else values.numel() - values.bool().count_nonzero().item()
    return (values.numel(), total, squares, sizes.sum().item(), sizes.amax().item(), zeros, 0.0, 0.0)


def _masked_block(values: torch.Tensor) -> torch.Tensor:
    wide = torch.float32 if values.device.type == "mps" else torch.float64  # Metal has no float64
    if values.dtype not in _MASKABLE:
        values = values.to(wide)
    finite = values.nan_to_num(0.0, 0.0, 0.0)
    norm = torch.linalg.vector_norm(finite, 2, dtype=wide)
    statistics = (
        torch.full((), values.numel(), dtype=wide, device=values.device),
        finite.sum(dtype=wide),
        norm * norm,
        torch.linalg.vector_norm(finite, 1, dtype=wide),
        torch.linalg.vector_norm(finite, math.inf, dtype=wide) if values.numel() else norm,
        values.numel() - values.count_nonzero(),
        values.isnan().sum(),
        values.isinf().sum(),
    )
    return torch.stack([statistic.to(wide) for statistic in statistics])
