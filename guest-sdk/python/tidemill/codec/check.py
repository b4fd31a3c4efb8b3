"""Finds words for a row that did not fit its schema. Nothing here runs for a row that does."""

from __future__ import annotations

import datetime
import decimal
from typing import Any, NamedTuple

from ..errors import INVALID_ROW, NULL_VALUE, OUT_OF_RANGE, Fault
from ..types import (
    ArrayType,
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    ShortType,
    StringType,
    StructType,
    TimestampType,
)
from .columns import REFUSED

_BITS: dict[type[DataType], int] = {ByteType: 8, ShortType: 16, IntegerType: 32, LongType: 64}
_TAKES: dict[type[DataType], tuple[tuple[type, ...], str]] = {
    BooleanType: ((bool,), "bool"),
    ByteType: ((int,), "int"),
    ShortType: ((int,), "int"),
    IntegerType: ((int,), "int"),
    LongType: ((int,), "int"),
    FloatType: ((float, int), "float"),
    DoubleType: ((float, int), "float"),
    DecimalType: ((decimal.Decimal, int), "decimal.Decimal"),
    StringType: ((str,), "str"),
    BinaryType: ((bytes, bytearray, memoryview), "bytes"),
    DateType: ((datetime.date,), "datetime.date"),
    TimestampType: ((datetime.datetime,), "datetime.datetime"),
    ArrayType: ((list, tuple), "list"),
    MapType: ((dict,), "dict"),
    StructType: ((tuple, list, dict), "tuple, Row or dict"),
}


class _Problem(NamedTuple):
    """Where in a value, what is wrong there, and the code of that."""

    path: str
    words: str
    code: str = INVALID_ROW


def values_of(row: Any, schema: StructType) -> tuple[Any, ...]:
    """The values of a row in the order of a schema: those of a dict or a Row go by their names, others by position."""
    if isinstance(row, tuple):
        names = getattr(row, "__fields__", ())
        if not names or list(names) == schema.names:
            return tuple(row)
        row = dict(zip(names, row))
    if isinstance(row, list):
        return tuple(row)
    if isinstance(row, dict):
        missing = [name for name in schema.names if name not in row]
        if missing:
            raise Fault(INVALID_ROW, f"column `{missing[0]}` is missing; the row has {_listed(row)}")
        if len(row) != len(schema):
            unknown = next(name for name in row if name not in schema.names)
            raise Fault(INVALID_ROW, f"there is no column `{unknown}`; there are {_listed(schema.names)}")
        return tuple([row[name] for name in schema.names])
    if row is None:
        raise Fault(NULL_VALUE, f"None is no row of {schema.columns()}")
    raise Fault(INVALID_ROW, f"{_shown(row)} is no row of {schema.columns()}: give a tuple, a Row or a dict")


def refused(values: tuple[Any, ...], schema: StructType, in_key: bool) -> Fault:
    """Why the values do not fit the schema."""
    if len(values) != len(schema):
        return Fault(INVALID_ROW, f"the row has {len(values)} values, its schema has {len(schema)} columns: {schema.columns()}")
    for field, value in zip(schema, values):
        found = _problem(value, field.dataType, in_key)
        if value is None and not field.nullable:
            return Fault(NULL_VALUE, f"column `{field.name}` is NOT NULL, but its value is None")
        if found:
            return Fault(found.code, f"column `{field.name}{found.path}`: {found.words}")
    return Fault(INVALID_ROW, f"{_shown(values)} is no row of {schema.columns()}")


def _problem(value: Any, data_type: DataType, in_key: bool) -> _Problem | None:
    if value is None:
        return None
    takes, name = _TAKES[type(data_type)]
    taken: bool = isinstance(value, takes)
    if not taken or isinstance(data_type, DateType) and isinstance(value, datetime.datetime):
        return _Problem("", f"{data_type.ddl()} takes {name}, not {_shown(value)}")
    if isinstance(data_type, ArrayType):
        return _first((f"[{i}]", element, data_type.elementType) for i, element in enumerate(value))
    if isinstance(data_type, MapType):
        if None in value:
            return _Problem("", "the key of a MAP entry is None")
        keys = _first((" key", key, data_type.keyType) for key in value)
        return keys or _first((f"[{key!r}]", of_key, data_type.valueType) for key, of_key in value.items())
    if isinstance(data_type, StructType):
        try:
            values = values_of(value, data_type)
        except Fault as fault:
            return _Problem("", fault.message)
        if len(values) != len(data_type):
            return _Problem("", f"{len(values)} values for {len(data_type)} fields")
        for field, of_field in zip(data_type, values):
            if of_field is None and not field.nullable:
                return _Problem(f".{field.name}", "it is NOT NULL, but its value is None")
        return _first((f".{field.name}", of_field, field.dataType) for field, of_field in zip(data_type, values))
    return _does_not_fit(value, data_type, in_key)


def _does_not_fit(value: Any, data_type: DataType, in_key: bool) -> _Problem | None:
    from .nested import column_of

    column = column_of(data_type, in_key)
    try:
        column.write(value)
    except UnicodeEncodeError:
        return _Problem("", f"{_shown(value)} is no text: it holds half of a surrogate pair")
    except REFUSED:
        return _Problem("", f"{_shown(value)} does not fit {data_type.ddl()}", OUT_OF_RANGE)
    # BIGINT is left to `struct`.
    bits = _BITS.get(type(data_type))
    if bits and not -(1 << bits - 1) <= value < 1 << bits - 1:
        return _Problem("", f"{_shown(value)} does not fit {data_type.ddl()}", OUT_OF_RANGE)
    return None


def _first(parts: Any) -> _Problem | None:
    for path, value, data_type in parts:
        found = _problem(value, data_type, False)
        if found:
            return found._replace(path=path + found.path)
    return None


def _listed(names: Any) -> str:
    return ", ".join(map(str, names)) or "none"


def _shown(value: Any) -> str:
    """A value and its type, cut short."""
    try:
        text = repr(value)
    except Exception:
        text = "a value that cannot be printed"
    return f"{text[:80]}{'...' if len(text) > 80 else ''} ({type(value).__name__})"
