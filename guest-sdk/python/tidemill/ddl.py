"""Reads schemas written in Spark's DDL: ``name TYPE [NOT NULL] [COMMENT 'text'], ...``."""

from __future__ import annotations

import re

from .errors import INVALID_SCHEMA, Fault
from .types import (
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
    StructField,
    StructType,
    TimestampType,
)

_SCALARS: dict[str, type[DataType]] = {
    "BOOLEAN": BooleanType,
    "TINYINT": ByteType,
    "BYTE": ByteType,
    "SMALLINT": ShortType,
    "SHORT": ShortType,
    "INT": IntegerType,
    "INTEGER": IntegerType,
    "BIGINT": LongType,
    "LONG": LongType,
    "FLOAT": FloatType,
    "REAL": FloatType,
    "DOUBLE": DoubleType,
    "STRING": StringType,
    "BINARY": BinaryType,
    "DATE": DateType,
    "TIMESTAMP": TimestampType,
    "TIMESTAMP_LTZ": TimestampType,
}

_TOKEN = re.compile(r"\s*(?:(?P<quoted>`(?:[^`]|``)*`)|(?P<text>'[^']*'|\"[^\"]*\")|(?P<word>\w+)|(?P<symbol>[<>(),:])|(?P<end>$))")


def parse(text: str) -> StructType:
    """Reads a list of columns, also when it is wrapped in ``STRUCT<...>``."""
    parser = _Parser(text)
    if parser.at_keyword("STRUCT") and parser.tokens[1] == ("symbol", "<"):
        parser.advance()
        schema = parser.columns_in_angles()
    else:
        schema = StructType(parser.columns("end"))
    if parser.tokens[0][0] != "end":
        raise parser.unexpected("`,` or the end")
    return schema


class _Parser:
    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = _tokens(text)

    def advance(self) -> tuple[str, str]:
        return self.tokens.pop(0)

    def at_keyword(self, keyword: str) -> bool:
        kind, value = self.tokens[0]
        return kind == "word" and value.upper() == keyword

    def at_symbol(self, symbol: str) -> bool:
        return self.tokens[0] == ("symbol", symbol)

    def expect(self, symbol: str) -> None:
        if not self.at_symbol(symbol):
            raise self.unexpected(f"`{symbol}`")
        self.advance()

    def columns(self, end: str) -> list[StructField]:
        fields: list[StructField] = []
        if end in self.tokens[0]:
            return fields
        while True:
            fields.append(self.column())
            if not self.at_symbol(","):
                return fields
            self.advance()

    def columns_in_angles(self) -> StructType:
        self.expect("<")
        fields = self.columns(">")
        self.expect(">")
        return StructType(fields)

    def column(self) -> StructField:
        kind, name = self.tokens[0]
        if kind == "quoted":
            name = name[1:-1].replace("``", "`")
        elif kind != "word":
            raise self.unexpected("a column name (in backquotes if it is not letters, digits and `_`)")
        self.advance()
        if self.at_symbol(":"):
            self.advance()
        data_type = self.data_type()
        nullable = True
        if self.at_keyword("NOT"):
            self.advance()
            if not self.at_keyword("NULL"):
                raise self.unexpected("NULL after NOT")
            self.advance()
            nullable = False
        if self.at_keyword("COMMENT"):
            self.advance()
            if self.tokens[0][0] != "text":
                raise self.unexpected("a quoted text after COMMENT")
            self.advance()
        return StructField(name, data_type, nullable)

    def data_type(self) -> DataType:
        kind, word = self.tokens[0]
        if kind != "word":
            raise self.unexpected("a type")
        name = word.upper()
        if name in _SCALARS:
            self.advance()
            return _SCALARS[name]()
        if name in ("DECIMAL", "DEC", "NUMERIC"):
            self.advance()
            return self.decimal()
        if name not in ("ARRAY", "MAP", "STRUCT"):
            raise self.error(
                f"there is no type {word}; there are BOOLEAN, TINYINT, SMALLINT, INT, BIGINT, FLOAT, DOUBLE, DECIMAL, "
                "STRING, BINARY, DATE, TIMESTAMP, ARRAY, MAP and STRUCT"
            )
        self.advance()
        if name == "STRUCT":
            return self.columns_in_angles()
        self.expect("<")
        first = self.data_type()
        if name == "ARRAY":
            self.expect(">")
            return ArrayType(first)
        self.expect(",")
        second = self.data_type()
        self.expect(">")
        return MapType(first, second)

    def decimal(self) -> DecimalType:
        if not self.at_symbol("("):
            return DecimalType()
        self.advance()
        precision, scale = self.number(), 0
        if self.at_symbol(","):
            self.advance()
            scale = self.number()
        self.expect(")")
        return DecimalType(precision, scale)

    def number(self) -> int:
        kind, word = self.tokens[0]
        if kind != "word" or not (word.isascii() and word.isdigit()):
            raise self.unexpected("a number")
        self.advance()
        return int(word)

    def unexpected(self, expected: str) -> Fault:
        kind, value = self.tokens[0]
        return self.error(f"expected {expected}, found {'the end' if kind == 'end' else f'`{value}`'}")

    def error(self, problem: str) -> Fault:
        return Fault(INVALID_SCHEMA, f"{problem}, in the schema \"{self.text}\"")


def _tokens(text: str) -> list[tuple[str, str]]:
    """The tokens of a text, each with its kind; the last one is the end."""
    tokens: list[tuple[str, str]] = []
    at = 0
    while not tokens or tokens[-1][0] != "end":
        match = _TOKEN.match(text, at)
        if match is None:
            raise Fault(INVALID_SCHEMA, f"`{text[at:at + 10]}` is out of place, in the schema \"{text}\"")
        kind = match.lastgroup or "end"
        tokens.append((kind, match[kind]))
        at = match.end()
    return tokens
