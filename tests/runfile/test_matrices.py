"""Statistics of single steps: what is read, when, and what stays in memory."""

from __future__ import annotations

import random
import struct
from pathlib import Path

import pytest

from tests.runfile.samples import INFO, matrix
from whygrad.model import Role, Statistics
from whygrad.runfile import matrices as matrices_module
from whygrad.runfile.connection import Source
from whygrad.runfile.matrices import FileMatrices
from whygrad.runfile.writer import RunWriter


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "rank0.whygrad"


def test_all_eight_numbers_come_back_to_the_last_bit(path: Path) -> None:
    rows = [tuple(random.uniform(-1e300, 1e300) for _ in range(8)) for _ in range(3)]
    rows.append((float("inf"), -0.0, 5e-324, 1e308, 0.1, 0.0, 1.0, 2.0))
    writer = RunWriter(path, INFO)
    writer.add_matrix(7, Role.UPDATE, [9, 4, 0, 70_000], matrix(*rows))
    writer.close()
    read = FileMatrices(Source(path)).read(7, Role.UPDATE)

    assert repr(read) == repr({i: Statistics(*row) for i, row in zip([9, 4, 0, 70_000], rows, strict=True)})


def test_histograms_come_back_by_id(path: Path) -> None:
    first, second = tuple(range(32)), (2**32 - 1,) * 32
    writer = RunWriter(path, INFO)
    writer.add_histogram(0, Role.GRADIENT, [3, 5], struct.pack("<64I", *first, *second))
    writer.close()

    assert FileMatrices(Source(path)).histogram(0, Role.GRADIENT) == {3: first, 5: second}


def test_roles_and_steps_that_were_not_recorded_are_empty(path: Path) -> None:
    writer = RunWriter(path, INFO)
    writer.add_matrix(2, Role.GRADIENT, [0], matrix((1,)))
    writer.close()
    matrices = FileMatrices(Source(path))

    assert matrices.steps(Role.WEIGHT) == ()
    assert matrices.read(2, Role.WEIGHT) == {}
    assert matrices.read(1, Role.GRADIENT) == {}
    assert matrices.histogram(2, Role.GRADIENT) == {}


def test_steps_are_ascending_in_whatever_order_they_were_written(path: Path) -> None:
    writer = RunWriter(path, INFO)
    for step in (5, 1, 30, 2):
        writer.add_matrix(step, Role.GRADIENT, [0], matrix((step,)))
    writer.close()

    assert FileMatrices(Source(path)).steps(Role.GRADIENT) == (1, 2, 5, 30)


def test_steps_that_are_recorded_later_are_left_out(path: Path) -> None:
    writer = RunWriter(path, INFO)
    writer.add_matrix(0, Role.GRADIENT, [0], matrix((1,)))
    writer.flush()
    matrices = FileMatrices(Source(path))
    writer.add_matrix(1, Role.GRADIENT, [0], matrix((2,)))
    writer.add_matrix(0, Role.WEIGHT, [0], matrix((3,)))
    writer.close()

    assert matrices.steps(Role.GRADIENT) == (0,)
    assert matrices.steps(Role.WEIGHT) == ()


def test_what_was_read_lately_is_not_read_again_and_the_rest_is_forgotten(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(matrices_module, "_CACHED_ROWS", 4)
    monkeypatch.setattr(matrices_module, "_CACHED_MATRICES", 2)
    writer = RunWriter(path, INFO)
    for step in range(4):
        writer.add_matrix(step, Role.GRADIENT, [0, 1], matrix((step,), (step,)))
    writer.close()
    matrices = FileMatrices(Source(path))
    first = matrices.read(0, Role.GRADIENT)
    matrices.read(1, Role.GRADIENT)

    assert matrices.read(0, Role.GRADIENT) is first
    matrices.read(2, Role.GRADIENT)  # forgets step 1, which was not used for longest
    assert matrices.read(0, Role.GRADIENT) is first
    assert {step for _, step, _ in matrices._cache} == {2, 0}
    assert matrices._cached_rows == 4
