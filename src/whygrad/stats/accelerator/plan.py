"""What a device is asked for: the statistics of tensors, or of how samples of them have changed."""

# N = elements, T = tensors

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import torch

from whygrad.stats.accelerator.cargo import Reduction
from whygrad.stats.accelerator.layout import Layout
from whygrad.stats.accelerator.reduction import NATIVE, batches, binned, laid_out, reduced
from whygrad.stats.fused import SAMPLED_ABOVE
from whygrad.stats.sampling import run_starts, take_runs
from whygrad.stats.single import NARROW
from whygrad.stats.support import elements


@dataclass(slots=True)
class Sampler:
    """Takes samples of tensors; which elements those are is worked out once for each size."""

    _starts: dict[tuple[int, int, torch.device], torch.Tensor] = field(default_factory=dict)

    def sample(self, values: torch.Tensor, limit: int) -> torch.Tensor:
        """Return at most `limit` elements of a flat tensor, those of `sampling.sample_view`."""
        if values.numel() <= limit:
            return values
        key = values.numel(), limit, values.device
        starts = self._starts.get(key)
        if starts is None:
            starts = self._starts[key] = run_starts(values.numel(), limit, values.device)
        return take_runs(values, starts)


def reduce(tensors: Sequence[torch.Tensor], sampler: Sampler, *, histograms: bool) -> Reduction:
    """Reduce local, supported tensors of one device."""
    read = [elements(tensor) for tensor in tensors]
    values = [each.values for each in read]
    owners: list[int] = []
    rows: list[torch.Tensor] = []
    for dtype, group in _by_dtype(values).items():
        native = dtype if dtype in NATIVE else torch.float64
        for batch in batches([values[index] for index in group]):
            parts = [part for _, part in batch]
            rows.append(reduced(laid_out(parts, native), [part.numel() for part in parts]).reshape(-1))
            owners += [group[index] for index, _ in batch]
    sampled: list[int] | None = None
    if histograms:
        sampled, counts = _histograms(values, sampler)
        rows += counts
    layout = Layout(
        counts=[part.numel() for part in values],
        repeats=[each.repeats for each in read],
        implicit_zeros=[each.implicit_zeros for each in read],
        parts=owners,
        samples=sampled,
        sampled=frozenset(index for index, part in enumerate(values) if part.numel() > SAMPLED_ABOVE),
    )
    return Reduction(_joined(rows, tensors), layout)


class Kept(NamedTuple):
    """Samples of some tensors of one dtype, end to end."""

    owners: list[int]  # the tensor of each
    sizes: list[int]  # of each sample
    counts: list[int]  # elements of each tensor
    flat: torch.Tensor

    def fits(self, at: int, values: torch.Tensor) -> bool:
        """Return whether the flat elements of a tensor can be compared with the sample at a position."""
        return (
            values.numel() == self.counts[at] and values.dtype is self.flat.dtype and values.device == self.flat.device
        )


def keep(tensors: Sequence[torch.Tensor], sampler: Sampler, limit: int) -> list[Kept]:
    """Copy at most `limit` elements of each of some local, supported, strided tensors of one device."""
    values = [elements(tensor).values for tensor in tensors]
    kept = []
    for dtype, group in _by_dtype(values).items():
        for batch in batches([sampler.sample(values[index], limit) for index in group]):
            parts = [part for _, part in batch]
            flat = laid_out(parts, dtype)
            owners = [group[index] for index, _ in batch]
            lone = flat is parts[0] and values[owners[0]].numel() <= limit  # then it is the tensor's own memory
            counts = [values[owner].numel() for owner in owners]
            kept.append(Kept(owners, [part.numel() for part in parts], counts, flat.clone() if lone else flat))
    return kept


def changes(kept: Sequence[Kept], tensors: Sequence[torch.Tensor | None], sampler: Sampler, limit: int) -> Reduction:
    """Reduce what has changed of samples since they were kept.

    Args:
        kept: From `keep`.
        tensors: The same ones; None where there is nothing to compare with any more.
        sampler: The same one.
        limit: The same one.
    """
    values = [None if tensor is None else elements(tensor).values for tensor in tensors]
    owners: list[int] = []
    rows: list[torch.Tensor] = []
    counts = [0] * len(tensors)
    for each in kept:
        now = [values[owner] for owner in each.owners]
        fits = [at for at, new in enumerate(now) if new is not None and each.fits(at, new)]
        if not fits:
            continue
        old = each.flat
        if len(fits) < len(now):
            parts = old.split_with_sizes(each.sizes)
            old = laid_out([parts[at] for at in fits], old.dtype)
        after = [sampler.sample(new, limit) for at in fits if (new := now[at]) is not None]
        wide = torch.float32 if old.dtype in NARROW else torch.float64
        sizes = [part.numel() for part in after]
        change = laid_out(after, old.dtype).to(wide) - old.to(wide)
        rows.append(reduced(change, sizes).reshape(-1))
        owners += [each.owners[at] for at in fits]
        for at, size in zip(fits, sizes, strict=True):
            counts[each.owners[at]] = size
    layout = Layout(counts, [1] * len(counts), [0] * len(counts), owners, None)
    return Reduction(_joined(rows, [each.flat for each in kept]), layout)


def _histograms(values: Sequence[torch.Tensor], sampler: Sampler) -> tuple[list[int], list[torch.Tensor]]:
    """Return the tensor of each row, and rows, float64 [H * CODES]."""
    owners: list[int] = []
    rows: list[torch.Tensor] = []
    for dtype, group in _by_dtype(values).items():
        wide = torch.float32 if dtype in NARROW else torch.float64
        for batch in batches([sampler.sample(values[index], SAMPLED_ABOVE) for index in group]):
            parts = [part for _, part in batch]
            rows.append(binned(laid_out(parts, wide), [part.numel() for part in parts]).double().reshape(-1))
            owners += [group[index] for index, _ in batch]
    return owners, rows


def _by_dtype(values: Sequence[torch.Tensor]) -> dict[torch.dtype, list[int]]:
    groups: dict[torch.dtype, list[int]] = {}
    for index, part in enumerate(values):
        groups.setdefault(part.dtype, []).append(index)
    return groups


def _joined(rows: Sequence[torch.Tensor], tensors: Sequence[torch.Tensor]) -> torch.Tensor:
    if rows:
        return torch.cat(list(rows))
    return torch.empty(0, dtype=torch.float64, device=tensors[0].device if tensors else "cpu")
