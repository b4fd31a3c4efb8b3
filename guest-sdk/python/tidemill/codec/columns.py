"""How a value of each type fills the slot of a column.

A slot has 8 bytes. Fixed types lie in it; the others have ``offset:u32, length:u32`` of their part there. A write
function raises any of :data:`REFUSED` for a value that does not fit; ``check.py`` then finds the words for it.
"""

from __future__ import annotations

import datetime
import decimal
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..types import (
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
    ShortType,
    StringType,
    TimestampType,
)

#: What writing a value that does not fit its column raises.
REFUSED = (TypeError, ValueError, AttributeError, OverflowError, struct.error, decimal.DecimalException)

#: Digits of the largest DECIMAL that lies in its slot.
SLOT_DIGITS = 18


@dataclass(frozen=True)
class Column:
    """How the values of a type are read and written."""

    #: The slot as ``struct`` names it; empty for a type with a part.
    fixed: str
    #: Of a fixed type ``read(slot) -> value``, else ``read(buffer, start, length) -> value``.
    read: Callable[..., Any]
    #: Of a fixed type ``write(value) -> slot``, else ``write(value) -> part``, without padding.
    write: Callable[[Any], Any]
    #: The same two as source text, where that is faster than a call: ``{0}``, ``{1}``, ``{2}`` are the arguments. For a
    #: fixed type the text of ``write`` is a statement that changes ``{0}``.
    read_text: str = ""
    write_text: str = ""


def fixed_column(data_type: DataType, in_key: bool) -> Column | None:
    """The column of a type that lies in its slot, if it does. In a key -0.0 is written as 0.0."""
    if isinstance(data_type, DecimalType) and data_type.precision <= SLOT_DIGITS:
        unscale, scale = decimal_functions(data_type)
        return Column("q", scale, unscale)
    if isinstance(data_type, (DoubleType, FloatType)):
        write = _write_double if isinstance(data_type, DoubleType) else write_float
        if in_key:
            return Column("d", float, lambda value: write(value) + 0.0, read_text="{0}")
        text = "if {0} != {0}: {0} = NAN" if isinstance(data_type, DoubleType) else ""
        return Column("d", float, write, read_text="{0}", write_text=text)
    return _FIXED.get(type(data_type))


def part_column(data_type: DataType) -> Column | None:
    """The column of STRING and BINARY."""
    return _PARTS.get(type(data_type))


def _int_column(bits: int) -> Column:
    low, high = -(1 << bits - 1), (1 << bits - 1) - 1

    def write(value: Any) -> Any:
        if not low <= value <= high:
            raise OverflowError
        return value

    return Column("q", int, write, read_text="{0}", write_text=f"if not {low} <= {{0}} <= {high}: raise OverflowError")


def _write_bool(value: Any) -> int:
    if value is True:
        return 1
    if value is False:
        return 0
    raise TypeError


def _write_double(value: Any) -> float:
    number = _number(value)
    return NAN if number != number else number


def write_float(value: Any) -> float:
    """The value as 32 bits represent it."""
    number = _number(value)
    if number != number:
        return NAN
    return float(_FLOAT.unpack(_FLOAT.pack(number))[0])


def _number(value: Any) -> float:
    if isinstance(value, (int, float)):
        return float(value)
    raise TypeError


def _write_date(value: Any) -> int:
    if value.__class__ is not datetime.date:
        raise TypeError
    return int(value.toordinal()) - _EPOCH_ORDINAL


def _read_date(days: int) -> datetime.date:
    return datetime.date.fromordinal(days + _EPOCH_ORDINAL)


def _read_timestamp(micros: int) -> datetime.datetime:
    return _EPOCH + datetime.timedelta(0, 0, micros)


def _write_timestamp(value: Any) -> int:
    if not isinstance(value, datetime.datetime):
        raise TypeError
    if value.tzinfo is None:
        value = value.replace(tzinfo=datetime.timezone.utc)
    since: datetime.timedelta = value - _EPOCH
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds


def decimal_functions(data_type: DecimalType) -> tuple[Callable[[Any], int], Callable[[int], decimal.Decimal]]:
    """Two functions, from a value to its unscaled integer and back."""
    scale, limit = data_type.scale, 10**data_type.precision

    def unscale(value: Any) -> int:
        if value.__class__ is not decimal.Decimal:
            if value.__class__ is not int:
                raise TypeError
            value = decimal.Decimal(value)
        unscaled = _EXACT.scaleb(value, scale)
        whole = int(unscaled)
        if whole != unscaled or not -limit < whole < limit:
            raise OverflowError
        return whole

    def rescale(unscaled: int) -> decimal.Decimal:
        return _EXACT.scaleb(decimal.Decimal(unscaled), -scale)

    return unscale, rescale


def _write_binary(value: Any) -> bytes:
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value)
    raise TypeError


NAN: float = struct.unpack("<d", bytes.fromhex("000000000000f87f"))[0]
_FLOAT = struct.Struct("<f")
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)
_EPOCH_ORDINAL = datetime.date(1970, 1, 1).toordinal()
# More digits than any DECIMAL has, so that nothing is rounded; what would be is an error.
_EXACT = decimal.Context(prec=120, traps=[decimal.InvalidOperation, decimal.Inexact, decimal.Overflow])

_FIXED: dict[type[DataType], Column] = {
    BooleanType: Column("q", bool, _write_bool, read_text="{0} != 0"),
    ByteType: _int_column(8),
    ShortType: _int_column(16),
    IntegerType: _int_column(32),
    # `struct` itself refuses what is no int or has more than 64 bits.
    LongType: Column("q", int, lambda value: value, read_text="{0}", write_text="pass"),
    DateType: Column("q", _read_date, _write_date),
    TimestampType: Column("q", _read_timestamp, _write_timestamp),
}

_PARTS: dict[type[DataType], Column] = {
    StringType: Column(
        "",
        lambda buffer, start, length: buffer[start : start + length].decode(),
        lambda value: value.encode(),
        read_text="{0}[{1}:{1} + {2}].decode()",
        write_text="{0}.encode()",
    ),
    BinaryType: Column(
        "",
        lambda buffer, start, length: buffer[start : start + length],
        _write_binary,
        read_text="{0}[{1}:{1} + {2}]",
    ),
}
