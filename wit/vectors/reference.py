#!/usr/bin/env python3
"""Writes packed-rows.json: a second implementation of packed rows, for the standard library alone, made to be read.

It packs what is listed below and has nothing in common with the host, so the host's tests compare two implementations.
Run it after a change of the cases: `python3 wit/vectors/reference.py`.
"""

import base64
import datetime
import decimal
import json
import math
import pathlib
import re
import struct

# --- schemas ---------------------------------------------------------------------------------------------------------

INTEGERS = {"TINYINT": 8, "SMALLINT": 16, "INT": 32, "BIGINT": 64}


def parse_schema(text):
    """The columns of a DDL text as [(name, type, nullable)]; types are tuples."""
    tokens = re.findall(r"`(?:[^`]|``)*`|\w+|[^\s\w]", text)
    columns = parse_columns(tokens)
    assert not tokens, tokens
    return columns


def parse_columns(tokens):
    columns = []
    while tokens and tokens[0] != ">":
        name = tokens.pop(0)
        if name.startswith("`"):
            name = name[1:-1].replace("``", "`")
        if tokens[0] == ":":
            tokens.pop(0)
        kind = parse_type(tokens)
        nullable = True
        if tokens[:2] == ["NOT", "NULL"]:
            del tokens[:2]
            nullable = False
        columns.append((name, kind, nullable))
        if tokens and tokens[0] == ",":
            tokens.pop(0)
    return columns


def parse_type(tokens):
    name = tokens.pop(0)
    if name == "DECIMAL":
        precision, scale = int(tokens[1]), int(tokens[3])
        del tokens[:5]
        return ("DECIMAL", precision, scale)
    if name not in ("ARRAY", "MAP", "STRUCT"):
        return (name,)
    expect(tokens, "<")
    if name == "ARRAY":
        kind = ("ARRAY", parse_type(tokens))
    elif name == "MAP":
        key = parse_type(tokens)
        expect(tokens, ",")
        kind = ("MAP", key, parse_type(tokens))
    else:
        kind = ("STRUCT", parse_columns(tokens))
    expect(tokens, ">")
    return kind


def expect(tokens, symbol):
    assert tokens.pop(0) == symbol, symbol


# --- packed rows -----------------------------------------------------------------------------------------------------


def pad(data):
    return data + bytes(-len(data) % 8)


def pack_row(columns, row, key=False):
    """Packs a row given as an object. In a key -0.0 is 0.0."""
    return pack([kind for _, kind, _ in columns], [row.get(name) for name, _, _ in columns], key)


def pack(kinds, values, key):
    words = (len(kinds) + 63) // 64
    nulls, slots, parts = 0, [], b""
    for column, (kind, value) in enumerate(zip(kinds, values)):
        if value is None:
            nulls |= 1 << column
            slots.append(bytes(8))
            continue
        packed = slot_of(kind, value, key)
        if packed is None:
            part = part_of(kind, value, key)
            packed = struct.pack("<II", (words + len(kinds)) * 8 + len(parts), len(part))
            parts += pad(part)
        slots.append(packed)
    return nulls.to_bytes(words * 8, "little") + b"".join(slots) + parts


def slot_of(kind, value, key):
    """The 8 bytes of a value that stands in its slot, else None."""
    name = kind[0]
    if name == "BOOLEAN":
        return struct.pack("<q", value)
    if name in INTEGERS:
        return struct.pack("<q", value)
    if name in ("FLOAT", "DOUBLE"):
        number = float({"Infinity": "inf", "-Infinity": "-inf"}.get(value, value))
        if name == "FLOAT":
            number = struct.unpack("<f", struct.pack("<f", number))[0]
        if math.isnan(number):
            return struct.pack("<Q", 0x7FF8000000000000)
        return struct.pack("<d", 0.0 if key and number == 0 else number)
    if name == "DATE":
        return struct.pack("<q", (datetime.date.fromisoformat(value) - datetime.date(1970, 1, 1)).days)
    if name == "TIMESTAMP":
        epoch = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)
        since = datetime.datetime.fromisoformat(value.replace("Z", "+00:00")) - epoch
        return struct.pack("<q", since // datetime.timedelta(microseconds=1))
    if name == "DECIMAL" and kind[1] <= 18:
        return struct.pack("<q", unscaled(kind, value))
    return None


def part_of(kind, value, key):
    name = kind[0]
    if name == "STRING":
        return value.encode()
    if name == "BINARY":
        return base64.b64decode(value)
    if name == "DECIMAL":
        number = unscaled(kind, value)
        length = ((number if number >= 0 else ~number).bit_length() + 8) // 8
        return number.to_bytes(length, "big", signed=True)
    if name == "ARRAY":
        return struct.pack("<Q", len(value)) + pack([kind[1]] * len(value), value, key)
    if name == "STRUCT":
        return pack_row(kind[1], value, key)
    entries = value.items() if isinstance(value, dict) else value
    entries = sorted(entries, key=lambda entry: pack([kind[1]], [entry[0]], True))
    keys = struct.pack("<Q", len(entries)) + pack([kind[1]] * len(entries), [k for k, _ in entries], True)
    values = struct.pack("<Q", len(entries)) + pack([kind[2]] * len(entries), [v for _, v in entries], key)
    arrays = struct.pack("<QII", 0, 24, len(keys)) + struct.pack("<II", 24 + len(pad(keys)), len(values))
    return arrays + pad(keys) + pad(values)


def unscaled(kind, value):
    with decimal.localcontext() as context:
        context.prec = 60
        return int(decimal.Decimal(value).scaleb(kind[2]))


# --- cases -----------------------------------------------------------------------------------------------------------

# (name, schema, row, other rows that pack to the same bytes)
VALID = [
    ("no columns", "", {}),
    ("boolean", "a BOOLEAN, b BOOLEAN", {"a": True, "b": False}),
    ("tinyint", "a TINYINT, b TINYINT, c TINYINT", {"a": -128, "b": 127, "c": -1}),
    ("smallint", "a SMALLINT, b SMALLINT", {"a": -32768, "b": 32767}),
    ("int", "a INT, b INT, c INT", {"a": -2147483648, "b": 2147483647, "c": 0}),
    ("bigint", "a BIGINT, b BIGINT, c BIGINT", {"a": -9223372036854775808, "b": 9223372036854775807, "c": 9007199254740993}),
    ("float", "a FLOAT, b FLOAT, c FLOAT, d FLOAT", {"a": 0.1, "b": -0.0, "c": 3.4028235e38, "d": 1.1754944e-38}),
    ("float, not finite", "a FLOAT, b FLOAT, c FLOAT", {"a": "NaN", "b": "Infinity", "c": "-Infinity"}),
    ("double", "a DOUBLE, b DOUBLE, c DOUBLE, d DOUBLE", {"a": 0.1, "b": -0.0, "c": 1.7976931348623157e308, "d": 5e-324}),
    ("double, not finite", "a DOUBLE, b DOUBLE, c DOUBLE", {"a": "NaN", "b": "Infinity", "c": "-Infinity"}),
    ("decimal in the slot", "a DECIMAL(18,2), b DECIMAL(18,0), c DECIMAL(3,3)", {"a": "-9999999999999999.99", "b": "999999999999999999", "c": "0.001"}),
    ("decimal, fewer digits after the point", "a DECIMAL(10,2)", {"a": "1.50"}, {"a": "1.5"}, {"a": "001.5"}),
    ("decimal of 19 digits, zero", "a DECIMAL(19,0), b DECIMAL(19,4)", {"a": "0", "b": "0.0000"}),
    ("decimal, least length", "a DECIMAL(38,0), b DECIMAL(38,0), c DECIMAL(38,0), d DECIMAL(38,0), e DECIMAL(38,0)", {"a": "127", "b": "128", "c": "-128", "d": "-129", "e": "-1"}),
    ("decimal of 38 digits", "a DECIMAL(38,0), b DECIMAL(38,38), c DECIMAL(38,10)", {"a": "99999999999999999999999999999999999999", "b": "-0.99999999999999999999999999999999999999", "c": "-1234567890123456789012345678.0123456789"}),
    ("string", "a STRING, b STRING, c STRING", {"a": "a", "b": "12345678", "c": "123456789"}),
    ("string, empty", "a STRING, b STRING, c STRING", {"a": "", "b": "x", "c": ""}),
    ("string, not ASCII", "a STRING", {"a": "Z\u00fcrich \u6771\u4eac \U0001f30a"}),
    ("string, a zero byte", "a STRING", {"a": "a\u0000b"}),
    ("binary", "a BINARY, b BINARY", {"a": "AP+A", "b": ""}),
    ("date", "a DATE, b DATE, c DATE, d DATE", {"a": "1970-01-01", "b": "1969-12-31", "c": "2024-02-29", "d": "0001-01-01"}),
    ("timestamp", "a TIMESTAMP, b TIMESTAMP, c TIMESTAMP", {"a": "2013-01-31T05:06:07.000008Z", "b": "1969-12-31T23:59:59.999999Z", "c": "9999-12-31T23:59:59.999999Z"}),
    ("timestamp, with an offset", "a TIMESTAMP", {"a": "2013-01-31T05:06:07.500000Z"}, {"a": "2013-01-31T07:06:07.5+02:00"}, {"a": "2013-01-31 05:06:07.5Z"}),
    ("nulls", "a INT, b STRING, c DOUBLE NOT NULL, d STRING", {"a": None, "b": None, "c": 1.5, "d": "x"}, {"c": 1.5, "d": "x"}),
    ("null between parts", "a STRING, b STRING, c STRING", {"a": "aa", "b": None, "c": "cc"}),
    ("all null", "a INT, b STRING, c ARRAY<INT>, d MAP<STRING, INT>, e STRUCT<x: INT>", {"a": None, "b": None, "c": None, "d": None, "e": None}),
    ("NULL is not the empty string", "a STRING, b STRING", {"a": None, "b": ""}),
    ("64 columns", ", ".join(f"c{i} INT" for i in range(64)), {f"c{i}": None if i % 7 == 0 else i for i in range(64)}),
    ("65 columns", ", ".join(f"c{i} INT" for i in range(65)), {f"c{i}": None if i in (0, 63, 64) else i for i in range(65)}),
    ("130 columns", ", ".join(f"c{i} STRING" for i in range(130)), {f"c{i}": None if i % 3 else str(i) for i in range(130)}),
    ("quoted names", "`a b` INT, `c``d` INT, `\u00e9` STRING, `` INT", {"a b": 1, "c`d": 2, "\u00e9": "e", "": 3}),
    ("array", "a ARRAY<INT>", {"a": [1, None, -3]}),
    ("array, empty", "a ARRAY<STRING>, b STRING", {"a": [], "b": "b"}),
    ("array of strings", "a ARRAY<STRING>", {"a": ["x", "", None, "123456789"]}),
    ("array of 65", "a ARRAY<BIGINT>", {"a": [None if i == 64 else i for i in range(65)]}),
    ("array of arrays", "a ARRAY<ARRAY<DOUBLE>>", {"a": [[1.5], [], None, [None, -0.0]]}),
    ("struct", "a STRUCT<x: INT NOT NULL, y: STRING>, b INT", {"a": {"x": 7, "y": "why"}, "b": 8}),
    ("struct without fields", "a STRUCT<>, b STRING", {"a": {}, "b": "b"}),
    ("struct in a struct", "a STRUCT<b: STRUCT<c: STRUCT<d: STRING>>>", {"a": {"b": {"c": {"d": "deep"}}}}),
    ("array of structs", "a ARRAY<STRUCT<x: BIGINT, tags: ARRAY<STRING>>>", {"a": [{"x": 1, "tags": ["a", "b"]}, None, {"x": None, "tags": []}]}),
    ("map, string keys: shorter first", "a MAP<STRING, INT>", {"a": {"b": 1, "aa": 2, "ab": None}}, {"a": {"ab": None, "aa": 2, "b": 1}}),
    ("map, empty", "a MAP<STRING, STRING>", {"a": {}}),
    ("map, the empty string as a key", "a MAP<STRING, STRING>", {"a": {"": "e", "x": ""}}),
    ("map, integer keys: by the first byte", "a MAP<INT, STRING>", {"a": [[256, "b"], [1, "a"], [2, "c"], [-1, "d"]]}, {"a": [[-1, "d"], [1, "a"], [2, "c"], [256, "b"]]}),
    ("map, -0.0 as a key", "a MAP<DOUBLE, DOUBLE>", {"a": [[0.0, -0.0], [1.0, "NaN"]]}, {"a": [[1.0, "NaN"], [-0.0, -0.0]]}),
    ("map, keys are structs", "a MAP<STRUCT<x: STRING, y: DOUBLE>, INT>", {"a": [[{"x": "a", "y": 0.0}, 1], [{"x": "b", "y": None}, 2]]}, {"a": [[{"x": "b"}, 2], [{"x": "a", "y": -0.0}, 1]]}),
    ("map, keys are arrays", "a MAP<ARRAY<INT>, INT>", {"a": [[[], 0], [[2], 2], [[1, 1], 1]]}, {"a": [[[2], 2], [[1, 1], 1], [[], 0]]}),
    ("map, keys are large decimals", "a MAP<DECIMAL(20,0), BOOLEAN>", {"a": [["5", True], ["-5", False], ["1000", None]]}, {"a": [["-5", False], ["1000", None], ["5", True]]}),
    ("map in a map's value", "a MAP<STRING, MAP<STRING, DECIMAL(20,1)>>", {"a": {"x": {"y": "-1.5"}, "z": None}}),
    ("everything at once", "id STRING NOT NULL, n BIGINT, price DECIMAL(12,2), big DECIMAL(30,5), day DATE, at TIMESTAMP NOT NULL, tags ARRAY<STRING>, counts MAP<STRING, BIGINT>, place STRUCT<lat: DOUBLE, lon: DOUBLE, names: ARRAY<STRUCT<lang: STRING, name: STRING>>>, raw BINARY, ok BOOLEAN", {"id": "k-1", "n": 42, "price": "-0.05", "big": "123456789012345678901.00001", "day": "2013-07-04", "at": "2013-07-04T12:00:00.000000Z", "tags": ["a", None], "counts": {"x": 1, "yy": 2}, "place": {"lat": 47.5, "lon": -122.25, "names": [{"lang": "en", "name": "here"}]}, "raw": "3q2+7w==", "ok": None}),
]

# (name, schema, row): -0.0 becomes 0.0 in grouping keys and keys of map state, at every depth.
KEYS = [
    ("negative zero", "a DOUBLE, b FLOAT, c STRING", {"a": -0.0, "b": -0.0, "c": "k"}),
    ("negative zero, nested", "a STRUCT<x: ARRAY<DOUBLE>>", {"a": {"x": [-0.0, 1.0]}}),
    ("NULL", "a STRING, b INT", {"a": None, "b": 1}),
]


def words(*values):
    """Words of 8 bytes as hex: numbers as they stand in slots, pairs as (offset, length), texts as they are."""
    out = b""
    for value in values:
        if isinstance(value, tuple):
            out += struct.pack("<II", *value)
        elif isinstance(value, bytes):
            out += value
        else:
            out += struct.pack("<Q", value % 2**64)
    return out.hex()


def double(value):
    return struct.pack("<d", value)


NULL_VALUE = "ILLEGAL_STATE_STORE_VALUE.NULL_VALUE"

# (name, schema, hex, code if it is not INVALID_ROW)
INVALID = [
    ("shorter than bitmap and slots", "a INT, b INT", words(0, 1)),
    ("no bytes", "a INT", ""),
    ("not a multiple of 8", "a INT", words(0, 1) + "00"),
    ("a word too many", "a INT", words(0, 1, 0)),
    ("a word where there are no columns", "", words(0)),
    ("a null bit past the last column", "a INT", words(2, 1)),
    ("the slot of a NULL is not zero", "a INT", words(1, 1)),
    ("NULL in a NOT NULL column", "a INT NOT NULL", words(1, 0), NULL_VALUE),
    ("NULL in a NOT NULL field of a struct", "a STRUCT<x: INT NOT NULL>", words(0, (16, 16), 1, 0), NULL_VALUE),
    ("boolean 2", "a BOOLEAN", words(0, 2)),
    ("tinyint out of range", "a TINYINT", words(0, 128)),
    ("tinyint that is not sign-extended", "a TINYINT", words(0, 255)),
    ("smallint out of range", "a SMALLINT", words(0, -32769)),
    ("int out of range", "a INT", words(0, 2**31)),
    ("date out of range", "a DATE", words(0, 2**31)),
    ("another NaN", "a DOUBLE", words(0, 0x7FF8000000000001)),
    ("a negative NaN", "a DOUBLE", words(0, 0xFFF8000000000000)),
    ("another NaN in a float", "a FLOAT", words(0, 0x7FF0000000000001)),
    ("a float of more than 32 bits", "a FLOAT", words(0, double(0.1))),
    ("a float out of range", "a FLOAT", words(0, double(1e39))),
    ("decimal of too many digits", "a DECIMAL(3,0)", words(0, 1000)),
    ("negative decimal of too many digits", "a DECIMAL(3,1)", words(0, -1000)),
    ("large decimal without bytes", "a DECIMAL(19,0)", words(0, (16, 0))),
    ("large decimal, positive, not least", "a DECIMAL(19,0)", words(0, (16, 2), b"\x00\x01" + bytes(6))),
    ("large decimal, negative, not least", "a DECIMAL(19,0)", words(0, (16, 2), b"\xff\x80" + bytes(6))),
    ("large decimal of too many digits", "a DECIMAL(19,0)", words(0, (16, 9), pad((10**19).to_bytes(9, "big")))),
    ("large decimal of 17 bytes", "a DECIMAL(38,0)", words(0, (16, 17), pad(b"\x01" + bytes(16)))),
    ("string that is not UTF-8", "a STRING", words(0, (16, 2), b"\xc3\x28" + bytes(6))),
    ("string with a surrogate", "a STRING", words(0, (16, 3), b"\xed\xa0\x80" + bytes(5))),
    ("padding that is not zero", "a STRING", words(0, (16, 1), b"a\x00\x00\x00\x00\x00\x00\x01")),
    ("offset into the slots", "a STRING", words(0, (8, 1), b"a" + bytes(7))),
    ("a gap before a part", "a STRING", words(0, (24, 1), 0, b"a" + bytes(7))),
    ("offset zero of an empty string", "a STRING", words(0, (0, 0))),
    ("two strings in one place", "a STRING, b STRING", words(0, (24, 1), (24, 1), b"a" + bytes(7))),
    ("parts out of order", "a STRING, b STRING", words(0, (32, 1), (24, 1), b"b" + bytes(7), b"a" + bytes(7))),
    ("a part past the end", "a STRING", words(0, (16, 9), b"a" * 8)),
    ("a part of 4 GiB", "a STRING", words(0, (16, 0xFFFFFFFF), b"a" * 8)),
    ("a part nobody points to", "a STRING", words(1, 0, b"a" * 8)),
    ("array without a count", "a ARRAY<INT>", words(0, (16, 0))),
    ("array with a false count", "a ARRAY<INT>", words(0, (16, 24), 2, 0, 1)),
    ("array with a huge count", "a ARRAY<INT>", words(0, (16, 24), 2**61, 0, 1)),
    ("array whose elements are out of range", "a ARRAY<TINYINT>", words(0, (16, 24), 1, 0, 300)),
    ("array with bytes left over", "a ARRAY<INT>", words(0, (16, 32), 1, 0, 1, 0)),
    ("array with a null bit past its last element", "a ARRAY<INT>", words(0, (16, 24), 1, 2, 1)),
    ("struct with a word too many", "a STRUCT<x: INT>", words(0, (16, 24), 0, 1, 0)),
    ("map keys out of order", "a MAP<INT, INT>", words(0, (16, 88), 0, (24, 32), (56, 32), 2, 0, 2, 1, 2, 0, 0, 0)),
    ("map key there twice", "a MAP<INT, INT>", words(0, (16, 88), 0, (24, 32), (56, 32), 2, 0, 1, 1, 2, 0, 0, 0)),
    ("map key NULL", "a MAP<INT, INT>", words(0, (16, 72), 0, (24, 24), (48, 24), 1, 1, 0, 1, 0, 0)),
    ("map key -0.0", "a MAP<DOUBLE, INT>", words(0, (16, 72), 0, (24, 24), (48, 24), 1, 0, double(-0.0), 1, 0, 0)),
    ("map with more keys than values", "a MAP<INT, INT>", words(0, (16, 56), 0, (24, 24), (48, 8), 1, 0, 1, 0)),
    ("map whose keys are NULL as a whole", "a MAP<INT, INT>", words(0, (16, 32), 1, 0, (24, 8), 0)),
    ("map keys out of order: longer strings come later", "a MAP<STRING, INT>", words(0, (16, 104), 0, (24, 48), (72, 32), 2, 0, (24, 2), (32, 1), b"aa" + bytes(6), b"b" + bytes(7), 2, 0, 0, 0)),
]

# (name, schema, hex): rows that are valid as values and not as keys.
INVALID_KEYS = [
    ("negative zero", "a DOUBLE", words(0, double(-0.0))),
    ("negative zero, nested", "a STRUCT<x: ARRAY<FLOAT>>", words(0, (16, 40), 0, (16, 24), 1, 0, double(-0.0))),
]


def main():
    def packed(schema, row, key=False):
        return pack_row(parse_schema(schema), row, key).hex()

    valid = []
    for name, schema, row, *also in VALID:
        case = {"name": name, "schema": schema, "row": row, "hex": packed(schema, row)}
        if also:
            case["also"] = also
            assert all(packed(schema, other) == case["hex"] for other in also), name
        valid.append(case)
    keys = [{"name": n, "schema": s, "row": r, "hex": packed(s, r, key=True)} for n, s, r in KEYS]
    invalid = [
        {"name": name, "schema": schema, "hex": data, "code": code[0] if code else "INVALID_ROW"}
        for name, schema, data, *code in INVALID
    ]
    invalid_keys = [{"name": n, "schema": s, "hex": h, "code": "INVALID_ROW"} for n, s, h in INVALID_KEYS]
    vectors = {"valid": valid, "keys": keys, "invalid": invalid, "invalid_keys": invalid_keys}
    lines = []
    for name, cases in vectors.items():
        listed = ",\n".join("    " + json.dumps(case, ensure_ascii=False) for case in cases)
        lines.append(f'  "{name}": [\n{listed}\n  ]')
    path = pathlib.Path(__file__).with_name("packed-rows.json")
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
