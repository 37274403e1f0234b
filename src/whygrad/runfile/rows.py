"""Between facts and rows: one mapping for every dataclass, derived from the types of its fields.

==================  ==========================================================
field               column
==================  ==========================================================
str, int            as it is
float               REAL; NaN is the text 'NaN', for SQLite turns it into NULL
bool                0 or 1
enum                its value
Place               number of a row of table `place`
other dataclass     one column for each of its fields
tuple, dict         JSON
None                NULL
==================  ==========================================================
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from enum import Enum
from functools import cache, lru_cache
from operator import attrgetter
from types import NoneType
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

from whygrad.model import Place, RunInfo
from whygrad.runfile.filling import filled
from whygrad.runfile.schema import TABLES

Fact = TypeVar("Fact")
Convert = Callable[[Any], Any]

_TEXTS_KEPT = 1024  # shapes and learning rates are the same in most rows


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a fact's table."""

    path: str  # of the value, from the fact: "name", "statistics.sum"
    encode: Convert | None  # None: SQLite takes the value as it is
    decode: Convert | None
    default: object  # encoded; MISSING where the field has none
    is_place: bool = False

    @property
    def name(self) -> str:
        """Return the column's name."""
        return self.path.rpartition(".")[2]


@dataclass(frozen=True, slots=True)
class _Codec:
    """What `columns_of` a fact come to, in the form that is quick to apply to many rows."""

    values: Callable[[Any], tuple[Any, ...]]
    encoders: tuple[tuple[int, Convert], ...]
    decoders: tuple[tuple[int, Convert], ...]
    places: tuple[int, ...]
    parts: tuple[tuple[slice, type], ...]  # dataclasses that are spread over columns, the last first


def to_rows(fact: type, facts: Iterable[object], number: Callable[[Place], int]) -> list[tuple[Any, ...]]:
    """Return the values of the columns of each fact; `number` gives a place its row in table `place`."""
    codec = _CODECS[fact]
    converters = (*codec.encoders, *((index, number) for index in codec.places))
    return list(zip(*_columns_of_rows([codec.values(one) for one in facts], converters), strict=True))


def from_rows(fact: type[Fact], rows: Sequence[Sequence[Any]], place: Callable[[int], Place]) -> tuple[Fact, ...]:
    """Return the facts whose columns hold the values of `rows`; `place` gives a row of table `place` its place.

    Raises:
        ValueError, TypeError, LookupError, AttributeError: The rows were not made by `to_rows`.
    """
    if not rows:
        return ()
    codec = _CODECS[fact]
    columns = _columns_of_rows(rows, (*codec.decoders, *((index, place) for index in codec.places)))
    for inside, part in codec.parts:
        columns[inside] = [filled(part, columns[inside], len(rows))]
    return tuple(filled(fact, columns, len(rows)))


def _columns_of_rows(rows: Sequence[Sequence[Any]], converters: Iterable[tuple[int, Convert]]) -> list[Sequence[Any]]:
    """Turn rows into columns and convert these one by one, which is several times quicker than row by row."""
    columns: list[Sequence[Any]] = list(zip(*rows, strict=True))
    for index, convert in converters if rows else ():
        columns[index] = [None if value is None else convert(value) for value in columns[index]]
    return columns


@cache
def upsert(fact: type) -> str:
    """Return the SQL that stores a row of the fact's table in place of an earlier one with the same key."""
    table = TABLES[fact]
    names = [f'"{column.name}"' for column in columns_of(fact)]
    changes = ", ".join(f"{name} = excluded.{name}" for name in names)
    return (
        f"INSERT INTO {table.name} ({', '.join(names)}) VALUES ({', '.join('?' * len(names))}) "  # noqa: S608 -- our own names
        f"ON CONFLICT ({table.conflict}) DO UPDATE SET {changes}"
    )


def to_meta(info: RunInfo) -> list[tuple[str, str]]:
    """Return the rows of table `meta`: name of the field, JSON."""
    return [(field.name, _to_json(getattr(info, field.name))) for field in fields(info)]


def from_meta(rows: Iterable[tuple[str, str]]) -> RunInfo:
    """Return what was run from the rows of table `meta`; keys that this version does not know are left out.

    Raises:
        ValueError, TypeError: The rows were not made by `to_meta`.
    """
    info: RunInfo = _from_json(RunInfo, {key: json.loads(value) for key, value in rows})
    return info


@cache
def columns_of(fact: type) -> tuple[Column, ...]:
    """Return the columns of the fact's table, in the order of the dataclass's fields."""
    return tuple(_columns(fact, ""))


def _columns(fact: type, prefix: str) -> Iterator[Column]:
    hints = get_type_hints(fact)
    for field in fields(fact):
        hint = _without_none(hints[field.name])
        path = prefix + field.name
        if isinstance(hint, type) and is_dataclass(hint) and hint is not Place:
            yield from _columns(hint, path + ".")
        else:
            encode, decode = _converters(hint)
            yield Column(path, encode, decode, _default(field, encode), hint is Place)


def _converters(hint: Any) -> tuple[Convert | None, Convert | None]:
    if hint in (int, Place):
        return None, None
    if hint is str:
        return _storable, None
    if hint is float:
        return _real, float
    if hint is bool:
        return int, bool
    if isinstance(hint, type) and issubclass(hint, Enum):
        return attrgetter("value"), hint
    if get_origin(hint) is tuple:
        return _to_json, lru_cache(_TEXTS_KEPT)(lambda text: _tuples(json.loads(text)))
    return _to_json, json.loads


def _default(field: Field[Any], encode: Convert | None) -> object:
    value = field.default if field.default_factory is MISSING else field.default_factory()
    return value if value is MISSING or value is None or encode is None else encode(value)


def _codec(fact: type) -> _Codec:
    columns = columns_of(fact)
    return _Codec(
        values=attrgetter(*(column.path for column in columns)),
        encoders=tuple((i, column.encode) for i, column in enumerate(columns) if column.encode),
        decoders=tuple((i, column.decode) for i, column in enumerate(columns) if column.decode),
        places=tuple(i for i, column in enumerate(columns) if column.is_place),
        parts=tuple(_parts(fact, columns)),
    )


def _parts(fact: type, columns: tuple[Column, ...]) -> Iterator[tuple[slice, type]]:
    hints = get_type_hints(fact)
    for field in reversed(fields(fact)):  # from the back, so that folding one part leaves the others where they are
        inside = [i for i, column in enumerate(columns) if column.path.startswith(f"{field.name}.")]
        if inside:
            yield slice(inside[0], inside[-1] + 1), hints[field.name]


def _without_none(hint: Any) -> Any:
    arguments = get_args(hint)
    return next(a for a in arguments if a is not NoneType) if NoneType in arguments else hint


def _storable(text: str) -> str:
    # File names that are no UTF-8 hold lone surrogates, which SQLite refuses.
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode("utf-8")


def _real(value: float) -> float | str:
    return value if value == value else "NaN"  # noqa: PLR0124 -- only NaN differs from itself


def _plain(value: object) -> object:
    """Return what stands for `value` in JSON: one value of a foreign type must not cost the run its file."""
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in fields(value)}
    return str(value)


_to_json = json.JSONEncoder(separators=(",", ":"), default=_plain).encode


def _from_json(hint: Any, value: Any) -> Any:
    hint = _without_none(hint)
    if value is not None and isinstance(hint, type) and is_dataclass(hint):
        hints = get_type_hints(hint)
        return hint(**{name: _from_json(hints[name], item) for name, item in value.items() if name in hints})
    return _tuples(value) if get_origin(hint) is tuple else value


def _tuples(value: Any) -> Any:
    return tuple(_tuples(item) for item in value) if isinstance(value, list) else value


_CODECS: dict[type, _Codec] = {fact: _codec(fact) for fact in (Place, *TABLES)}
