"""The packed rows of the contract, in both directions."""

from __future__ import annotations

import base64
import datetime
import decimal
import json
import pathlib
from typing import Any

import pytest

from tidemill import Row
from tidemill.codec import codec_of
from tidemill.codec.columns import write_float
from tidemill.ddl import parse
from tidemill.errors import Fault
from tidemill.types import ArrayType, BinaryType, DataType, DateType, DecimalType, DoubleType, FloatType, MapType, StructType, TimestampType

VECTORS = json.loads((pathlib.Path(__file__).parents[3] / "wit" / "vectors" / "packed-rows.json").read_text())


def value_of(json_value: Any, data_type: DataType, in_key: bool = False) -> Any:
    """What a value of the vectors is in Python."""
    if json_value is None:
        return None
    if isinstance(data_type, StructType):
        return {field.name: value_of(json_value.get(field.name), field.dataType, in_key) for field in data_type}
    if isinstance(data_type, ArrayType):
        values = [value_of(element, data_type.elementType, in_key) for element in json_value]
        return tuple(values) if in_key else values
    if isinstance(data_type, MapType):
        pairs = json_value.items() if isinstance(json_value, dict) else json_value
        return {
            hashable(value_of(key, data_type.keyType, True)): value_of(value, data_type.valueType) for key, value in pairs
        }
    if isinstance(data_type, DoubleType):
        return float(json_value)
    if isinstance(data_type, FloatType):
        return write_float(float(json_value))
    if isinstance(data_type, DecimalType):
        return decimal.Decimal(json_value)
    if isinstance(data_type, BinaryType):
        return base64.b64decode(json_value)
    if isinstance(data_type, DateType):
        return datetime.date.fromisoformat(json_value)
    if isinstance(data_type, TimestampType):
        return timestamp(json_value)
    return json_value


def hashable(value: Any) -> Any:
    return Row(**value) if isinstance(value, dict) else value


def timestamp(text: str) -> datetime.datetime:
    for pattern in ("%Y-%m-%dT%H:%M:%S.%f%z", "%Y-%m-%d %H:%M:%S.%f%z"):
        try:
            return datetime.datetime.strptime(text, pattern)
        except ValueError:
            pass
    raise AssertionError(text)


def same(left: Any, right: Any) -> bool:
    """Equality that tells the zeros apart and takes NaN for itself."""
    return repr(left) == repr(right)


def cases(kind: str) -> list[Any]:
    return [pytest.param(vector, id=vector["name"]) for vector in VECTORS[kind]]


@pytest.mark.parametrize("vector", cases("valid"))
def test_a_row_packs_to_its_bytes(vector: dict[str, Any]) -> None:
    schema = parse(vector["schema"])
    codec = codec_of(schema)
    for row in [vector["row"], *vector.get("also", [])]:
        assert codec.encode(value_of(row, schema)).hex() == vector["hex"]


@pytest.mark.parametrize("vector", cases("valid"))
def test_bytes_read_back_as_the_row(vector: dict[str, Any]) -> None:
    schema = parse(vector["schema"])
    codec = codec_of(schema)
    packed = bytes.fromhex(vector["hex"])
    # Not at the start of the buffer, where an offset that is not relative would go unseen.
    row = codec.decode(b"\xff" * 8 + packed, 8)
    assert codec.encode(row) == packed
    assert len(row) == len(schema)
    expected = value_of(vector["row"], schema)
    for field, value in zip(schema, row):
        assert same(plain(value), plain(expected[field.name])), field


def plain(value: Any) -> Any:
    """The value without its containers' kinds and orders."""
    if isinstance(value, Row):
        return plain(value.asDict())
    if isinstance(value, dict):
        return sorted((repr(plain(key)), plain(element)) for key, element in value.items())
    if isinstance(value, (list, tuple)):
        return [plain(element) for element in value]
    return 0.0 if value == 0 and isinstance(value, float) and str(value) == "0.0" else value


@pytest.mark.parametrize("vector", cases("keys"))
def test_a_key_packs_to_its_bytes(vector: dict[str, Any]) -> None:
    schema = parse(vector["schema"])
    codec = codec_of(schema, in_key=True)
    packed = codec.encode(value_of(vector["row"], schema, True))
    assert packed.hex() == vector["hex"]
    assert codec.encode(codec.decode(packed, 0)) == packed


@pytest.mark.parametrize("vector", [case for case in cases("invalid") if case.values[0]["code"] != "INVALID_ROW"])
def test_a_null_where_there_is_none_is_refused(vector: dict[str, Any]) -> None:
    schema = parse(vector["schema"])
    nothing: Any = (None,) if not isinstance(schema[0].dataType, StructType) else ((None,),)
    with pytest.raises(Fault) as fault:
        codec_of(schema).encode(nothing)
    assert fault.value.code in (vector["code"], "INVALID_ROW")
