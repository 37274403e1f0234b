"""The tables hold exactly the fields of the dataclasses, and come back as they went in."""

from __future__ import annotations

import math
import sqlite3
from dataclasses import MISSING, fields, is_dataclass
from pathlib import Path
from types import NoneType
from typing import Any, get_args, get_origin, get_type_hints

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from whygrad.model import CutKind, Deed, Event, Parameter, PathEnd, Place, Role, RunInfo, Statistics, Step, Total
from whygrad.runfile.rows import columns_of, from_meta, from_rows, to_meta, to_rows, upsert
from whygrad.runfile.schema import DDL, TABLES, Table

NUMBERS = st.floats().filter(lambda x: x != 0) | st.just(0.0)  # SQLite drops the sign of zero
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


def values(hint: Any) -> st.SearchStrategy[Any]:
    """Return a strategy for what a field with this type may hold."""
    arguments = get_args(hint)
    if NoneType in arguments:
        return st.none() | values(arguments[0])
    if get_origin(hint) is tuple:
        return (
            st.lists(values(arguments[0]), max_size=3).map(tuple)
            if arguments[-1] is ...
            else st.tuples(*map(values, arguments))
        )
    if get_origin(hint) is dict:
        return st.dictionaries(st.text(), JSON, max_size=3)
    if is_dataclass(hint):
        hints = get_type_hints(hint)
        return st.builds(hint, **{field.name: values(hints[field.name]) for field in fields(hint)})
    simple = {
        int: st.integers(-(2**63), 2**63 - 1),
        float: NUMBERS,
        str: st.text(),
        bool: st.booleans(),
        Role: st.sampled_from(Role),
        PathEnd: st.sampled_from(PathEnd),
        CutKind: st.sampled_from(CutKind),
        Deed: st.sampled_from(Deed),
    }
    return simple[hint]


def empty_file() -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.executescript(DDL)
    return connection


def column_names(table: str) -> list[str]:
    connection = empty_file()
    names = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
    connection.close()
    return names


@pytest.mark.parametrize(("fact", "table"), [(fact, table.name) for fact, table in TABLES.items() if fact is not Total])
def test_the_columns_of_a_table_are_the_fields_of_its_dataclass(fact: type, table: str) -> None:
    assert column_names(table) == [field.name for field in fields(fact)]


def test_a_total_has_columns_for_its_own_fields_and_then_for_its_statistics() -> None:
    own = [field.name for field in fields(Total) if field.name != "statistics"]

    assert column_names("total") == own + [field.name for field in fields(Statistics)]


def test_the_columns_of_a_place_follow_its_number() -> None:
    assert column_names("place") == ["id", *(field.name for field in fields(Place))]


def test_every_table_and_every_dataclass_is_spoken_for() -> None:
    connection = empty_file()
    tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    connection.close()

    assert tables == {"meta", "place", "layout", "matrix", "histogram"} | {table.name for table in TABLES.values()}


def test_every_table_is_explained_above_its_declaration() -> None:
    lines = DDL.splitlines()
    declared = [i for i, line in enumerate(lines) if line.startswith("CREATE TABLE")]

    assert [lines[i] for i in declared if not lines[i - 1].startswith("-- ")] == []


def test_a_field_that_an_older_file_may_lack_has_an_encoded_default() -> None:
    defaults = {column.name: column.default for column in columns_of(Parameter)}

    assert defaults["aliases"] == "[]"
    assert defaults["registered"] == 1
    assert defaults["made_at"] is None
    assert defaults["name"] is MISSING


@pytest.mark.parametrize("fact", TABLES)
@settings(deadline=None, max_examples=40)
@given(draw=st.data())
def test_every_fact_comes_back_from_sqlite_as_it_went_in(fact: type, draw: st.DataObject) -> None:
    original = draw.draw(values(fact))

    returned = through_sqlite(fact, original)

    assert repr(returned) == repr(original)  # repr, for NaN differs from itself


def through_sqlite(fact: type, original: object) -> object:
    table: Table = TABLES[fact]
    places: dict[int, Place] = {}

    def number(place: Place) -> int:
        places[len(places) + 1] = place
        return len(places)

    connection = empty_file()
    connection.executemany(upsert(fact), to_rows(fact, [original], number))
    rows = connection.execute(f"SELECT * FROM {table.name}").fetchall()  # noqa: S608 -- our own name
    connection.close()
    [returned] = from_rows(fact, rows, places.__getitem__)
    return returned


@settings(deadline=None, max_examples=40)
@given(values(RunInfo))
def test_a_run_comes_back_from_its_rows_as_it_went_in(info: RunInfo) -> None:
    assert repr(from_meta(to_meta(info))) == repr(info)


@pytest.mark.parametrize("loss", [math.nan, math.inf, -math.inf, None, 0.0, 5e-324])
def test_a_loss_that_is_no_finite_number_is_not_taken_for_a_missing_one(loss: float | None) -> None:
    returned = through_sqlite(Step, Step(3, None, 0.0, loss=loss))

    assert repr(returned.loss) == repr(loss)


def test_numbers_in_the_detail_of_an_event_may_be_nan_or_infinite() -> None:
    detail = {"loss": math.nan, "values": [math.inf, -math.inf]}

    returned = through_sqlite(Event, Event("nonfinite", 0, 0, detail=detail))

    assert repr(returned.detail) == repr(detail)


def test_a_value_that_json_does_not_know_is_stored_as_text() -> None:
    returned = through_sqlite(Event, Event("cut", 0, 0, detail={"at": Path("a/b"), "place": Place("a.py", 3)}))

    assert returned.detail["at"] == str(Path("a/b"))
    assert returned.detail["place"]["line"] == 3


def test_a_file_name_that_is_no_utf8_is_stored_with_escapes() -> None:
    rows = to_rows(Place, [Place("caf\udce9.py", 1)], {}.__getitem__)

    assert from_rows(Place, rows, {}.__getitem__)[0].file == "caf\\udce9.py"


def test_keys_of_a_run_that_this_version_does_not_know_are_left_out() -> None:
    rows = [*to_meta(RunInfo("train.py")), ("colour", '"red"')]

    assert from_meta(rows) == RunInfo("train.py")
