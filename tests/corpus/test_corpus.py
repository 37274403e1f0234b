"""Every case of the corpus, scored; each family against its floors."""

from __future__ import annotations

import json
import os
import time
from dataclasses import asdict
from pathlib import Path

import pytest

from tests.corpus.score import MEASURES, TIMEOUT_S, Case, Row, load_cases, read_floors, score, shortfall

CASES = load_cases()


@pytest.fixture(scope="session")
def rows_folder(tmp_path_factory):
    """Return the folder in which all processes of this test session leave their rows."""
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    folder = shared / "corpus-rows"
    folder.mkdir(exist_ok=True)
    return folder


def write_row(folder: Path, row: Row):
    # Written aside and renamed: another process may be waiting for it.
    aside = folder / f"{row.case}.writing"
    aside.write_text(json.dumps(asdict(row)), encoding="utf-8")
    aside.rename(folder / f"{row.case}.json")


def wait_for_rows(folder: Path, cases: list[Case], timeout_s: float) -> list[Row]:
    deadline = time.monotonic() + timeout_s
    paths = [folder / f"{case.name}.json" for case in cases]
    while missing := [path.stem for path in paths if not path.exists()]:
        assert time.monotonic() < deadline, f"never scored: {', '.join(missing)}"
        time.sleep(0.1)
    return [Row(**json.loads(path.read_text(encoding="utf-8"))) for path in paths]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.family}-{case.name}")
def test_a_case_runs_to_a_findings_file(case, rows_folder, record_property):
    row = score(case)
    write_row(rows_folder, row)
    record_property("corpus_row", asdict(row))

    if row.lacking:
        pytest.skip(f"install {', '.join(row.lacking)} to score {row.case}")
    assert row.answered, row.got


@pytest.mark.last
@pytest.mark.parametrize("family", MEASURES)
def test_a_family_reaches_its_floor(family, rows_folder, request):
    members = [case for case in CASES if case.family == family]
    chosen = {item.callspec.params.get("case") for item in request.session.items if hasattr(item, "callspec")}
    if not chosen.issuperset(members):
        pytest.skip(f"only a part of the {family} cases was chosen")

    rows = wait_for_rows(rows_folder, members, timeout_s=2 * TIMEOUT_S)

    below = shortfall(family, rows, read_floors())
    misses = [row.case for row in rows if not row.lacking and not row.hit]
    assert not below, f"{family} is below its floor, as measure: (reached, floor) {below}; missed: {', '.join(misses)}"
