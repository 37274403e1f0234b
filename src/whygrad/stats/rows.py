"""Rows of statistics that are measured one after the other, such as those of what modules return.

Several threads may add rows: data-parallel replicas run side by side.
"""

# R = rows, S = statistics

from __future__ import annotations

from threading import Lock

import torch

from whygrad.model import STATISTICS
from whygrad.stats import fused
from whygrad.stats.accelerator.transport import is_capturing
from whygrad.stats.addresses import address
from whygrad.stats.library import library
from whygrad.stats.single import single_statistics
from whygrad.stats.support import refusal

_COLUMNS = len(STATISTICS)
_ROW_BYTES = 8 * _COLUMNS
_FEWEST = 8


class Rows:
    """Statistics of tensors, each with the id of what it describes."""

    def __init__(self, expected: int = 0) -> None:
        """Make room for `expected` rows; there may be more."""
        self.ids: list[int] = []
        self._expected = max(_FEWEST, expected)
        self._chunks: list[tuple[torch.Tensor, int]] = []  # float64 [`_expected`, S] each, and its address
        self._elsewhere: dict[int, torch.Tensor] = {}  # what the compiled kernel cannot read: index -> float64 [S]
        self._lock = Lock()

    def __len__(self) -> int:
        return len(self.ids)

    def add(self, number: int, tensor: torch.Tensor) -> int | None:
        """Measure a tensor under the id `number`; return the index of its row, None if it cannot be measured.

        Must be called where `__torch_function__` is disabled. The host never waits for another device.
        """
        kernel = library()
        where = 0 if kernel is None else address(tensor)
        if kernel is not None and where:
            index, row = self._reserve(number)
            if fused.one(kernel, where, tensor, row):
                return index
            self._elsewhere[index] = single_statistics(tensor)
            return index
        if refusal(tensor) is not None or (tensor.is_cuda and is_capturing()):
            return None
        found = single_statistics(tensor)  # before there is a row: it may fail
        index, _ = self._reserve(number)
        self._elsewhere[index] = found
        return index

    def put(self, number: int, row: torch.Tensor) -> None:
        """Add a row that was measured before, float64 [S]."""
        index, _ = self._reserve(number)
        self._elsewhere[index] = row

    def row(self, index: int) -> torch.Tensor:
        """Return one row, float64 [S], on the device where it was measured."""
        found = self._elsewhere.get(index)
        chunk, at = divmod(index, self._expected)
        return self._chunks[chunk][0][at] if found is None else found

    def parts(self) -> tuple[torch.Tensor, dict[int, torch.Tensor]]:
        """Return float64 [R, S] on the CPU, and the rows that are not in it, [S] each, by index, wherever they lie."""
        chunks = [chunk for chunk, _ in self._chunks]
        return (chunks[0] if len(chunks) == 1 else torch.cat(chunks))[: len(self.ids)], self._elsewhere

    def _reserve(self, number: int) -> tuple[int, int]:
        """Return index and address of a new row."""
        with self._lock:
            index = len(self.ids)
            self.ids.append(number)
            chunk, at = divmod(index, self._expected)
            if chunk == len(self._chunks):
                new = torch.zeros(self._expected, _COLUMNS, dtype=torch.float64, device="cpu")
                self._chunks.append((new, new.data_ptr()))
            return index, self._chunks[chunk][1] + at * _ROW_BYTES
