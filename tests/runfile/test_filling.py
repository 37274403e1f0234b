"""Dataclasses made column by column."""

from __future__ import annotations

import pytest

from whygrad.model import Event, Statistics
from whygrad.runfile.filling import filled


def test_they_equal_those_made_one_by_one():
    rows = [tuple(float(10 * row + column) for column in range(8)) for row in range(5)]
    assert filled(Statistics, list(zip(*rows, strict=True)), 5) == [Statistics(*row) for row in rows]
    assert filled(Event, [["a"], [1], [2], [3], ["b"], [None], [{}]], 1) == [Event("a", 1, 2, 3, "b", None, {})]
    assert filled(Statistics, [[]] * 8, 0) == []


def test_a_missing_column_is_an_error():
    with pytest.raises(ValueError, match="shorter"):
        filled(Statistics, [[1.0]] * 7, 1)
