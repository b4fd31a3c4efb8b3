"""Columns whose part is more than text: ARRAY, MAP, STRUCT and DECIMAL of more than 18 digits."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

from ..errors import INVALID_SCHEMA, Fault
from ..types import ArrayType, DataType, DecimalType, MapType, StructType
from .columns import Column, decimal_functions, fixed_column, part_column

_COUNT = struct.Struct("<Q")
_PART = struct.Struct("<II")
#: Two columns, neither NULL: head and slots of a MAP.
_MAP_HEAD = struct.Struct("<QIIII")


def column_of(data_type: DataType, in_key: bool) -> Column:
    """How values of a type are read and written; in a key, arrays are tuples and -0.0 is written as 0.0."""
    column = fixed_column(data_type, in_key) or part_column(data_type)
    if column is not None:
        return column
    if isinstance(data_type, DecimalType):
        return _decimal_column(data_type)
    if isinstance(data_type, ArrayType):
        return _array_column(column_of(data_type.elementType, in_key), in_key)
    if isinstance(data_type, MapType):
        if in_key:
            raise Fault(INVALID_SCHEMA, f"{data_type.ddl()} in a key: a key holds no MAP")
        return _map_column(data_type)
    if isinstance(data_type, StructType):
        return _struct_column(data_type, in_key)
    raise Fault(INVALID_SCHEMA, f"{data_type!r} is no type of a column")


def _decimal_column(data_type: DecimalType) -> Column:
    unscale, rescale = decimal_functions(data_type)

    def read(buffer: bytes, start: int, length: int) -> Any:
        return rescale(int.from_bytes(buffer[start : start + length], "big", signed=True))

    def write(value: Any) -> bytes:
        unscaled = unscale(value)
        # The least number of bytes that holds the sign: a negative number has one bit less than its complement.
        bits = (unscaled if unscaled >= 0 else ~unscaled).bit_length()
        return unscaled.to_bytes(bits // 8 + 1, "big", signed=True)

    return Column("", read, write)


def _struct_column(data_type: StructType, in_key: bool) -> Column:
    from .rows import codec_of

    codec = codec_of(data_type, in_key)
    decode = codec.decode
    return Column("", lambda buffer, start, length: decode(buffer, start), codec.encode)


def _array_column(element: Column, in_key: bool) -> Column:
    read_values, write_values = values_functions(element)
    made: Callable[[list[Any]], Any] = tuple if in_key else list

    def read(buffer: bytes, start: int, length: int) -> Any:
        return made(read_values(buffer, start))

    def write(value: Any) -> bytes:
        if not isinstance(value, (list, tuple)):
            raise TypeError
        return write_values(value)

    return Column("", read, write)


def _map_column(data_type: MapType) -> Column:
    key = column_of(data_type.keyType, True)
    read_keys, write_keys = values_functions(key)
    read_values, write_values = values_functions(column_of(data_type.valueType, False))

    def read(buffer: bytes, start: int, length: int) -> dict[Any, Any]:
        _, keys_at, _, values_at, _ = _MAP_HEAD.unpack_from(buffer, start)
        return dict(zip(read_keys(buffer, start + keys_at), read_values(buffer, start + values_at)))

    def write(value: Any) -> bytes:
        if not isinstance(value, dict):
            raise TypeError
        entries: list[tuple[bytes, Any, Any]] = []
        for entry_key, entry_value in value.items():
            if entry_key is None:
                raise ValueError
            # An array of one element orders as the packed row of one column does: count and bitmap are the same.
            entries.append((write_keys((entry_key,)), entry_key, entry_value))
        entries.sort(key=_packed_key)
        if any(entries[i][0] == entries[i + 1][0] for i in range(len(entries) - 1)):
            raise ValueError
        keys = write_keys([entry[1] for entry in entries])
        values = write_values([entry[2] for entry in entries])
        keys_at = _MAP_HEAD.size
        return _MAP_HEAD.pack(0, keys_at, len(keys), keys_at + len(keys), len(values)) + keys + values

    return Column("", read, write)


def _packed_key(entry: tuple[bytes, Any, Any]) -> bytes:
    return entry[0]


def values_functions(element: Column) -> tuple[Callable[[bytes, int], list[Any]], Callable[[Any], bytes]]:
    """Two functions that read and write values of one type: ``count:u64``, then a packed row of so many columns."""
    fixed, read_one, write_one = element.fixed, element.read, element.write

    def read(buffer: bytes, start: int) -> list[Any]:
        (count,) = _COUNT.unpack_from(buffer, start)
        row = start + 8
        slots = row + (count + 63) // 64 * 8
        nulls = int.from_bytes(buffer[row:slots], "little")
        values: list[Any]
        if fixed:
            values = [read_one(slot) for slot in struct.unpack_from(f"<{count}{fixed}", buffer, slots)]
        else:
            places = struct.unpack_from(f"<{2 * count}I", buffer, slots)
            values = [
                None if nulls >> i & 1 else read_one(buffer, row + places[2 * i], places[2 * i + 1]) for i in range(count)
            ]
        if nulls and fixed:
            return [None if nulls >> i & 1 else value for i, value in enumerate(values)]
        return values

    def write(values: Any) -> bytes:
        count = len(values)
        words = (count + 63) // 64
        nulls = 0
        for i, value in enumerate(values):
            if value is None:
                nulls |= 1 << i
        head = _COUNT.pack(count) + nulls.to_bytes(words * 8, "little")
        if fixed:
            return head + struct.pack(f"<{count}{fixed}", *[0 if value is None else write_one(value) for value in values])
        end = (words + count) * 8
        slots: list[bytes] = [head]
        parts: list[bytes] = []
        for value in values:
            if value is None:
                slots.append(_PART.pack(0, 0))
                continue
            part = write_one(value)
            slots.append(_PART.pack(end, len(part)))
            padding = -len(part) & 7
            parts.append(part)
            parts.append(bytes(padding))
            end += len(part) + padding
        return b"".join(slots + parts)

    return read, write
