"""A run file in the making."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.runfile.samples import INFO
from whygrad.runfile.writer import RunWriter


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run" / "rank0.whygrad"


@pytest.fixture
def writer(path: Path) -> Iterator[RunWriter]:
    made = RunWriter(path, INFO)
    yield made
    made.close()
