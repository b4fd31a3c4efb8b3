"""A value per grouping key.

Each schema has a class of its own, generated once, so that reading and writing cost one ``struct`` call each.
"""

from __future__ import annotations

import struct
from functools import lru_cache
from typing import Any

from ..codec import codec_of
from ..codec.rows import RowSource, compiled, indented
from ..row import Row
from ..session import APPLY_AT_PIECES, CLEAR, LARGE_PIECE_BYTES, OP_HEAD, VALUE_PUT, Session
from ..types import StructType

#: Where the value is: not in the buffer, but known to be absent or not known.
ABSENT, UNKNOWN = -1, -2


class ValueState:
    """A value per grouping key: a row of the schema that it was made with."""

    __slots__ = ("_at", "_buffer", "_session", "_variable")

    def __init__(self, session: Session, variable: int) -> None:
        self._session = session
        self._variable = variable
        #: The packed value is at `_at` of the buffer: a chunk, an op or what the host answered.
        self._buffer = b""
        self._at = UNKNOWN

    def exists(self) -> bool:
        """Whether there is a value."""
        return self._known("valueState.exists") >= 0

    def get(self) -> Row | None:
        """The value, or None if there is none."""
        raise NotImplementedError

    def update(self, newValue: Any) -> None:
        """Sets the value, a tuple, Row or dict, and starts its TTL anew."""
        raise NotImplementedError

    def clear(self) -> None:
        """Removes the value."""
        self._session.write("valueState.clear", CLEAR, self._variable, b"")
        self._at = ABSENT

    def forget(self) -> None:
        """Another group: nothing is known of its value."""
        self._at = UNKNOWN

    def _known(self, operation: str) -> int:
        """Where the value is, asking the host if need be."""
        if self._at == UNKNOWN:
            group = self._session.group_in_hand(operation)
            packed = self._session.host.get_value(self._variable, group)
            if packed is None:
                self._at = ABSENT
            else:
                self._buffer, self._at = packed, 0
        return self._at


def value_state(session: Session, variable: int, schema: StructType) -> ValueState:
    """The handle of a value state."""
    return _class_of(schema.columns())(session, variable)


@lru_cache(maxsize=None)
def _class_of(columns: str) -> type[ValueState]:
    from ..ddl import parse

    schema = parse(columns)
    source = RowSource(schema, False, "r_")
    source.names |= {
        "ValueState": ValueState,
        "unpack": struct.Struct("<" + source.format).unpack_from,
        "schema": schema,
        "slow": codec_of(schema).decode,
    }
    packed = source.write("newValue", "IIII", [str(VALUE_PUT), "self._variable", "group", "size"], "op")
    lines = [
        "class Value(ValueState):",
        "    __slots__ = ()",
        "    def get(self):",
        "        at = self._at",
        "        if at < 0:",
        f"            if at == {ABSENT} or self._known('valueState.get') == {ABSENT}: return None",
        "            at = self._at",
        "        buffer = self._buffer",
        *([f"        {', '.join(source.slots)}, = unpack(buffer, at)"] if source.slots else []),
        f"        return {source.row('buffer', 'at')}",
        "    def update(self, newValue):",
        *indented(source.take("newValue"), 2),
        "        session = self._session",
        "        group = session.group",
        "        try:",
        *indented(packed, 3),
        "        except REFUSED:",
        "            session.refuse('valueState.update', newValue, schema)",
        "        ops = session.ops",
        "        ops.append(op)",
        "        self._buffer = op",
        f"        self._at = {OP_HEAD.size}",
        f"        if {'size > %d or ' % LARGE_PIECE_BYTES if source.parts else ''}len(ops) > {APPLY_AT_PIECES}: session.make_room(size)",
    ]
    generated: type[ValueState] = compiled("Value", lines, source.names, schema)
    return generated
