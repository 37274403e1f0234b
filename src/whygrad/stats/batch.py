"""Statistics of many small CPU tensors at once: the calls into torch cost more than the elements.

The tensors are laid end to end in one matrix. Each begins a new row and fills its last row up with zeros, which change
no sum and no maximum; a dozen calls then give the statistics of every row, and rows are added up to tensors.
"""

# R = rows, S = statistics, T = tensors

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch

from whygrad.model import STATISTICS
from whygrad.stats.segments import COUNT, ZEROS, add_up
from whygrad.stats.single import BLOCK

ROW = 512  # elements: few enough that bytes count the nonzero ones of a row, see `_nonzeros`
SMALL = 4_096  # elements: beyond, a tensor keeps the processor busy on its own
FEW = 12  # tensors: fewer are faster one by one


def batch_statistics(tensors: Sequence[torch.Tensor]) -> torch.Tensor:
    """Return the statistics of small strided CPU tensors of one dtype as float64 [T, S].

    A row of which `single.is_finite` is false is not right: those elements are in its sums.
    """
    counts = torch.tensor([tensor.numel() for tensor in tensors], device="cpu")
    by_row = torch.cat([_row_statistics(_laid_out(batch)) for batch in _batches(tensors)], 1)
    rows = counts.add(ROW - 1).div(ROW, rounding_mode="floor").clamp(1)
    matrix = add_up(by_row.T.contiguous(), rows)
    matrix[:, COUNT] = counts
    matrix[:, ZEROS] += counts
    return matrix


def _batches(tensors: Sequence[torch.Tensor]) -> Iterator[Sequence[torch.Tensor]]:
    """Cut a sequence of tensors into runs that fill about one block each."""
    start = rows = 0
    for index, tensor in enumerate(tensors):
        rows += _rows(tensor)
        if rows * ROW >= BLOCK:
            yield tensors[start : index + 1]
            start, rows = index + 1, 0
    if rows:
        yield tensors[start:]


def _rows(tensor: torch.Tensor) -> int:
    return max(1, -(-tensor.numel() // ROW))


def _laid_out(tensors: Sequence[torch.Tensor]) -> torch.Tensor:
    """Return the elements of the tensors in a matrix [R, ROW], each tensor from the start of a row on."""
    padding = [_rows(tensor) * ROW - tensor.numel() for tensor in tensors]
    zeros = torch.zeros(sum(padding), dtype=tensors[0].dtype, device="cpu").split_with_sizes(padding)
    parts = [part for pair in zip(tensors, zeros, strict=True) for part in pair]
    return torch._C._nn.flatten_dense_tensors(parts).view(-1, ROW)


def _row_statistics(laid_out: torch.Tensor) -> torch.Tensor:
    """Return float64 [S, R]; the count is left to the caller, and zeros are counted as minus the others."""
    wide = laid_out.to(torch.float64, copy=True)
    matrix = torch.zeros(len(STATISTICS), len(wide), dtype=torch.float64, device="cpu")
    _, total, squares, sizes, largest, zeros, _, _ = matrix.unbind()
    zeros.sub_(_nonzeros(laid_out))
    torch.sum(wide, 1, out=total)
    torch.linalg.vector_norm(wide, 2, dim=1, out=squares)
    squares.square_()
    wide.abs_()
    torch.sum(wide, 1, out=sizes)
    torch.amax(wide, 1, out=largest)
    return matrix


def _nonzeros(laid_out: torch.Tensor) -> torch.Tensor:
    """Count the nonzero elements of each row, int64 [R].

    Bools are summed eight at a time, as the bytes of one integer: each byte counts at most ROW / 8 < 256 of them. torch
    has no fast count along a dimension.
    """
    lanes = laid_out.bool().view(torch.int64).sum(1)
    return lanes.view(torch.uint8).view(-1, 8).sum(1)
