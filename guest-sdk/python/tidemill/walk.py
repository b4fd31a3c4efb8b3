"""Generates the loops that walk the chunks of a phase, call the handler for each group, and emit what it answers.

A loop is generated for the schemas of its keys, rows and output, so that everything that happens per group and row is
a few `struct` calls on local variables. Layouts: ``wit/README.md``, "Chunks" and "Ops".
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from .codec.rows import RowSource, compiled, indented
from .errors import INVALID_ROW, Fault
from .session import APPLY_AT_PIECES, CHUNK_HEAD, CONTINUED, CONTINUES, EMIT, GROUP_HEAD, LARGE_PIECE_BYTES, LENGTH
from .timers import ExpiredTimerInfo
from .types import LongType, StructField, StructType

INPUT_ROWS, EXPIRED_TIMER, INITIAL_STATE = "handleInputRows", "handleExpiredTimer", "handleInitialState"

#: `walk(session, handler, time, timers)`
Walk = Callable[[Any, Callable[..., Any], Any, Any], None]

EXPIRIES = StructType([StructField("expiry_ms", LongType(), nullable=False)])


def walk(phase: str, key: StructType, rows: StructType, output: StructType) -> Walk:
    """The loop of a phase."""
    return _walk(phase, _Schemas(key, rows, output))


class _Schemas:
    """Schemas as the key of a cache."""

    def __init__(self, *schemas: StructType) -> None:
        self.schemas = schemas
        self._text = [schema.columns() for schema in schemas]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Schemas) and self._text == other._text

    def __hash__(self) -> int:
        return hash(tuple(self._text))


@lru_cache(maxsize=None)
def _walk(phase: str, schemas: _Schemas) -> Walk:
    key, rows, output = schemas.schemas
    key_source = RowSource(key, True, "k_")
    row_source = RowSource(rows, False, "r_")
    out_source = RowSource(output, False, "o_")
    lines = [*_read_rows(row_source), *_groups(key_source, row_source)]
    lines += indented(_handler(phase, out_source), 3)
    lines += ["    session.leave_group()"]
    names = {**key_source.names, **row_source.names, **out_source.names}
    names |= {
        "read_chunk": CHUNK_HEAD.unpack_from,
        "read_group": struct.Struct(GROUP_HEAD.format + key_source.format).unpack_from,
        "read_row": struct.Struct("<I4x" + row_source.format).unpack_from,
        "read_length": LENGTH.unpack_from,
        "ExpiredTimerInfo": ExpiredTimerInfo,
        "Fault": Fault,
        "no_rows": _no_rows,
    }
    made: Walk = compiled("walk", lines, names, rows)
    return made


def _read_rows(source: RowSource) -> list[str]:
    """A function that reads rows that lie in one chunk."""
    return [
        "def read_rows(chunk, at, count):",
        "    rows = []",
        "    for _ in range(count):",
        f"        {', '.join(['length', *source.slots])}, = read_row(chunk, at)",
        f"        at += {LENGTH.size}",
        f"        rows.append({source.row('chunk', 'at')})",
        "        at += length",
        "    return rows",
    ]


def _groups(key: RowSource, row: RowSource) -> list[str]:
    """The loop over chunks and groups, up to where `key`, `rows` and `over` are known."""
    key_of_nulls = f" if not ({key.has_null()}) else tuple(k_slow(chunk, at))" if key.words else ""
    return [
        "def walk(session, handler, time, timers):",
        "    ops = session.ops",
        "    add = ops.append",
        "    while (chunk := session.next_chunk()) is not None:",
        "        groups, count = read_chunk(chunk)",
        "        states = session.prefetched(chunk, count)",
        "        others = [state for state in session.values.values() if state not in states]",
        f"        end = {CHUNK_HEAD.size} + (count * 4 + 7 & -8)",
        "        for _ in range(groups):",
        f"            {', '.join(['group', 'flags', 'count', 'key_length', 'length', *key.slots])} = read_group(chunk, end)",
        f"            at = end + {GROUP_HEAD.size}",
        "            end = at + length",
        # What is left of a group whose handler stopped reading.
        f"            if flags & {CONTINUED}: continue",
        "            session.group = group",
        f"            key = {key.values('chunk', 'at')}{key_of_nulls}",
        "            at += key_length",
        "            for state in states:",
        "                length, present = read_length(chunk, at)",
        f"                at += {LENGTH.size}",
        "                if present == 1:",
        "                    state._buffer = chunk",
        "                    state._at = at",
        "                    at += length",
        "                else:",
        "                    state._at = -1 if present == 0 else -2",
        "            for state in others: state._at = -2",
        f"            over = flags & {CONTINUES}",
        "            if over:",
        "                rows = session.rows_over_chunks(chunk, at, count, read_rows)",
        "            elif count == 1:",
        f"                {', '.join(['length', *row.slots])}, = read_row(chunk, at)",
        f"                at += {LENGTH.size}",
        f"                rows = iter(({row.row('chunk', 'at')},))",
        "            else:",
        "                rows = iter(read_rows(chunk, at, count))",
    ]


def _handler(phase: str, out: RowSource) -> list[str]:
    """Calls the handler for the group in hand."""
    if phase == INITIAL_STATE:
        return ["for row in rows: handler(key, row, time)"]
    if phase == EXPIRED_TIMER:
        return [
            "timers.begin_group()",
            "for expiry_ms, in rows:",
            "    if timers.begin_firing(expiry_ms):",
            "        result = handler(key, time, ExpiredTimerInfo(expiry_ms))",
            *indented(_emit(phase, out), 2),
        ]
    return ["result = handler(key, rows, time)", *_emit(phase, out), "if over: rows.close()"]


def _emit(phase: str, out: RowSource) -> list[str]:
    """Emits the rows of a result."""
    large = f"size > {LARGE_PIECE_BYTES} or " if out.parts else ""
    return [
        "if result is not None:",
        "    try:",
        "        for row in result:",
        "            try:",
        *indented(out.take("row"), 4),
        *indented(out.write("row", "IIII", [str(EMIT), "0", "group", "size"], "op"), 4),
        "            except (Fault, *REFUSED) as error:",
        "                session.refuse_emitted(result, row, o_schema, error)",
        "            add(op)",
        f"            if {large}len(ops) > {APPLY_AT_PIECES}: session.make_room(size)",
        "    except TypeError:",
        f"        no_rows('{phase}', result)",
        "        raise",
    ]


def _no_rows(phase: str, result: Any) -> None:
    """A TypeError came while a result was read; says so if the result itself is why."""
    if not hasattr(result, "__iter__"):
        raise Fault(INVALID_ROW, f"`{phase}` answered {result!r}, which is no iterable of rows: use `yield`, or answer a list") from None
