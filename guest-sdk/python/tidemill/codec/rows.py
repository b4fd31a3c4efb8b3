"""Generates the functions that read and write the rows of a schema.

A schema is known long before its rows come, so the text of its functions is too: one ``struct`` call for all slots,
values in local variables, no loop over columns. :class:`RowSource` makes the pieces of text; :class:`RowCodec` makes
functions of them; ``walk.py`` and ``state/value.py`` put the pieces into loops of their own.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from ..row import Row, row_class
from ..types import StructType
from .check import refused, values_of
from .columns import NAN, REFUSED
from .nested import column_of

#: Zeros after a part of so many bytes, modulo 8.
PADDING = [bytes(-length & 7) for length in range(8)]
#: A part of at most so many words is packed together with the slots.
SHORT_PART_WORDS = 16


class RowSource:
    """Text that reads and writes the rows of a schema, with names that begin with ``prefix``."""

    def __init__(self, schema: StructType, in_key: bool, prefix: str) -> None:
        self.schema = schema
        self.prefix = prefix
        self.columns = [column_of(field.dataType, in_key) for field in schema]
        self.words = [f"{prefix}w{i}" for i in range((len(schema) + 63) // 64)]
        #: Bytes of bitmap and slots.
        self.fixed_bytes = 8 * (len(self.words) + len(schema))
        #: Bitmap and slots, as `struct` names them, and the variables that hold them.
        self.format = "Q" * len(self.words) + "".join(column.fixed or "II" for column in self.columns)
        self.slots = self.words + [name for i in range(len(schema)) for name in self._slot(i)]
        self.parts = [i for i, column in enumerate(self.columns) if not column.fixed]
        #: What the text refers to.
        self.names: dict[str, Any] = {
            f"{prefix}Row": row_class(tuple(schema.names)),
            f"{prefix}schema": schema,
            "new": tuple.__new__,
            "NAN": NAN,
            "REFUSED": REFUSED,
            "values_of": values_of,
            "PADDING": PADDING,
        }
        for i, column in enumerate(self.columns):
            self.names[f"{prefix}read{i}"] = column.read
            self.names[f"{prefix}write{i}"] = column.write
        self.names[f"{prefix}slow"] = self._slow_reader()

    # --- reading

    def has_null(self) -> str:
        """Whether a NULL is in the row whose slots were read."""
        return " or ".join(self.words) or "False"

    def values(self, buffer: str, at: str) -> str:
        """The values of the row at `at` whose slots were read, a tuple; none of them is NULL."""
        values = [self._value(i, buffer, at) for i in range(len(self.columns))]
        return f"({', '.join(values)}{',' if len(values) == 1 else ''})"

    def row(self, buffer: str, at: str) -> str:
        """The row at `at` whose slots were read, as an expression."""
        p = self.prefix
        row = f"new({p}Row, {self.values(buffer, at)})"
        return f"{row} if not ({self.has_null()}) else {p}slow({buffer}, {at})" if self.words else row

    def _value(self, i: int, buffer: str, at: str) -> str:
        column, p = self.columns[i], self.prefix
        if column.fixed:
            return column.read_text.format(f"{p}x{i}") if column.read_text else f"{p}read{i}({p}x{i})"
        place = (buffer, f"{at} + {p}o{i}", f"{p}l{i}")
        return column.read_text.format(*place) if column.read_text else f"{p}read{i}({', '.join(place)})"

    def _slow_reader(self) -> Callable[[bytes, int], Row]:
        """A function that reads a row with NULLs in it."""
        unpack, words, columns = struct.Struct("<" + self.format).unpack_from, len(self.words), self.columns
        made = row_class(tuple(self.schema.names))

        def read(buffer: bytes, at: int) -> Row:
            slots = unpack(buffer, at)
            values: list[Any] = []
            place = words
            for i, column in enumerate(columns):
                null = slots[i // 64] >> i % 64 & 1
                if column.fixed:
                    values.append(None if null else column.read(slots[place]))
                    place += 1
                else:
                    values.append(None if null else column.read(buffer, at + slots[place], slots[place + 1]))
                    place += 2
            return tuple.__new__(made, values)

        return read

    # --- writing

    def take(self, value: str) -> list[str]:
        """Statements that make a tuple of whatever an author gave as a row."""
        return [
            f"if type({value}) is not tuple and type({value}) is not {self.prefix}Row:",
            f"    {value} = values_of({value}, {self.prefix}schema)",
        ]

    def write(self, values: str, head: str, arguments: list[str], target: str) -> list[str]:
        """Statements that pack a tuple into `target`, behind a head.

        The head is `head` to `struct`, its values are `arguments`, among which `size` is the number of bytes that
        follow it.
        """
        p = self.prefix
        lines = [f"{', '.join(f'{p}x{i}' for i in range(len(self.columns)))}, = {values}" if self.columns else f"() = {values}"]
        lines += [f"{word} = 0" for word in self.words]
        for i, column in enumerate(self.columns):
            if column.fixed:
                lines += self._write_fixed(i)
        if not self.parts:
            self.names[f"{p}pack"] = struct.Struct(f"<{head}{self.format}").pack
            return lines + [f"size = {self.fixed_bytes}", f"{target} = {p}pack({', '.join(arguments + self.slots)})"]
        lines.append(f"size = {self.fixed_bytes}")
        for i in self.parts:
            lines += self._write_part(i)
        self.names[f"{p}pack"] = struct.Struct(f"<{head}{self.format}").pack
        given = ", ".join(arguments + self.slots)
        parts = " + ".join(f"{p}y{i} + PADDING[{p}l{i} & 7]" for i in self.parts)
        long = f"{target} = {p}pack({given}) + {parts}"
        if len(self.parts) > 1:
            return lines + [long]
        # One part: `struct` pads it, and one call makes the whole.
        first = self.parts[0]
        self.names[f"{p}packs"] = [
            struct.Struct(f"<{head}{self.format}{8 * words}s").pack for words in range(SHORT_PART_WORDS + 1)
        ]
        return lines + [
            f"if {p}l{first} <= {8 * SHORT_PART_WORDS}:",
            f"    {target} = {p}packs[{p}l{first} + 7 >> 3]({given}, {p}y{first})",
            "else:",
            f"    {long}",
        ]

    def _write_fixed(self, i: int) -> list[str]:
        column, value = self.columns[i], f"{self.prefix}x{i}"
        statement = column.write_text.format(value) if column.write_text else f"{value} = {self.prefix}write{i}({value})"
        # None in a column that is NOT NULL is refused by `struct` or by the function.
        if not self.schema[i].nullable:
            return [statement]
        if statement == "pass":
            return [f"if {value} is None:", f"    {self._null(i)}; {value} = 0"]
        return [f"if {value} is None:", f"    {self._null(i)}; {value} = 0", "else:", f"    {statement}"]

    def _write_part(self, i: int) -> list[str]:
        p, column = self.prefix, self.columns[i]
        write = column.write_text.format(f"{p}x{i}") if column.write_text else f"{p}write{i}({p}x{i})"
        place = [f"{p}y{i} = {write}", f"{p}l{i} = len({p}y{i})", f"{p}o{i} = size", f"size += {p}l{i} + 7 & -8"]
        if not self.schema[i].nullable:
            return place
        null = f"    {self._null(i)}; {p}o{i} = {p}l{i} = 0; {p}y{i} = b''"
        return [f"if {p}x{i} is None:", null, "else:", *("    " + line for line in place)]

    def _null(self, i: int) -> str:
        return f"{self.words[i // 64]} |= {1 << i % 64}"

    def _slot(self, i: int) -> list[str]:
        p = self.prefix
        return [f"{p}x{i}"] if self.columns[i].fixed else [f"{p}o{i}", f"{p}l{i}"]


class RowCodec:
    """Reads and writes the rows of a schema."""

    def __init__(self, schema: StructType, in_key: bool) -> None:
        self.schema = schema
        self.in_key = in_key
        #: `decode(buffer, at) -> Row`
        self.decode: Callable[[bytes, int], Row] = _decoder(schema, in_key)
        #: `encode(row) -> bytes`, the row alone.
        self.encode: Callable[[Any], bytes] = _encoder(schema, in_key, "", [])
        self._encode_element: Callable[[Any], bytes] | None = None

    @property
    def encode_element(self) -> Callable[[Any], bytes]:
        """As `encode`, with the row's length before it, as in lists of rows."""
        if self._encode_element is None:
            self._encode_element = _encoder(self.schema, self.in_key, "II", ["size", "0"])
        return self._encode_element


def codec_of(schema: StructType, in_key: bool = False) -> RowCodec:
    """The codec of a schema, made once. In a key -0.0 is written as 0.0, and arrays are tuples."""
    return _codec(schema.columns(), in_key, _Given(schema))


class _Given:
    """Carries a schema past a cache that goes by its text alone."""

    def __init__(self, schema: StructType) -> None:
        self.schema = schema

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Given)

    def __hash__(self) -> int:
        return 0


@lru_cache(maxsize=None)
def _codec(columns: str, in_key: bool, given: _Given) -> RowCodec:
    return RowCodec(given.schema, in_key)


def compiled(name: str, lines: list[str], names: dict[str, Any], about: StructType) -> Any:
    """Compiles the text of a function or class and answers it."""
    scope = dict(names)
    exec(compile("\n".join(lines), f"<tidemill {name} of {about.columns()}>", "exec"), scope)
    return scope[name]


def indented(lines: list[str], levels: int = 1) -> list[str]:
    """The lines, further in."""
    return [f"{'    ' * levels}{line}" for line in lines]


def _decoder(schema: StructType, in_key: bool) -> Callable[[bytes, int], Row]:
    source = RowSource(schema, in_key, "r_")
    source.names["unpack"] = struct.Struct("<" + source.format).unpack_from
    lines = ["def decode(buffer, at):"]
    if source.slots:
        lines.append(f"    {', '.join(source.slots)}, = unpack(buffer, at)")
    lines.append(f"    return {source.row('buffer', 'at')}")
    decode: Callable[[bytes, int], Row] = compiled("decode", lines, source.names, schema)
    return decode


def _encoder(schema: StructType, in_key: bool, head: str, arguments: list[str]) -> Callable[[Any], bytes]:
    source = RowSource(schema, in_key, "r_")
    source.names["refused"] = lambda values: refused(values, schema, in_key)
    lines = [
        "def encode(values):",
        *indented(source.take("values")),
        "    try:",
        *indented(source.write("values", head, arguments, "packed"), 2),
        "    except REFUSED:",
        "        raise refused(values) from None",
        "    return packed",
    ]
    encode: Callable[[Any], bytes] = compiled("encode", lines, source.names, schema)
    return encode
