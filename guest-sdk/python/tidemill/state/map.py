"""A map per grouping key.

Writes of the group in hand that are still pending are found again by their packed key, so that counting in a map
(``getValue``, then ``updateValue``) costs no call once a key was written. What was applied, the host knows.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..codec import codec_of
from ..errors import NULL_VALUE, Fault
from ..host import ENTRIES, KEYS, VALUES
from ..row import Row
from ..session import CLEAR, LENGTH, MAP_PUT, MAP_REMOVE, Session
from ..types import StructType
from .pages import entries, rows


class MapState:
    """A map per grouping key: keys and values are rows of the schemas that it was made with.

    Two keys are the same if their packed rows are; 0.0 and -0.0 are one key.
    """

    __slots__ = ("_cleared", "_generation", "_group", "_key", "_session", "_value", "_variable", "_writes")

    def __init__(self, session: Session, variable: int, key: StructType, value: StructType) -> None:
        self._session = session
        self._variable = variable
        self._key = codec_of(key, in_key=True)
        self._value = codec_of(value)
        #: Pending writes of a group, under a generation of the ops: packed values by packed key, None for removed.
        self._writes: dict[bytes, bytes | None] = {}
        self._cleared = False
        self._generation = -1
        self._group: int | None = None

    def exists(self) -> bool:
        """Whether there is an entry."""
        group = self._applied("mapState.exists")
        return self._session.host.exists(self._variable, group)

    def getValue(self, key: Any) -> Row | None:
        """The value at a key, or None if there is none."""
        group, packed, pending = self._look_up("mapState.getValue", key)
        if pending:
            value = self._writes.get(packed)
        else:
            value = self._session.host.get_map_value(self._variable, group, packed)
        return None if value is None else self._value.decode(value, 0)

    def containsKey(self, key: Any) -> bool:
        """Whether there is an entry at a key."""
        group, packed, pending = self._look_up("mapState.containsKey", key)
        if pending:
            return self._writes.get(packed) is not None
        return self._session.host.contains_key(self._variable, group, packed)

    def updateValue(self, key: Any, value: Any) -> None:
        """Sets the value at a key, and starts the entry's TTL anew."""
        group, packed = self._packed("mapState.updateValue", key)
        packed_value = self._value.encode(value)
        payload = LENGTH.pack(len(packed), 0) + packed + packed_value
        self._session.write("mapState.updateValue", MAP_PUT, self._variable, payload)
        self._own(group)
        self._writes[packed] = packed_value

    def removeKey(self, key: Any) -> None:
        """Removes the entry at a key, if there is one."""
        group, packed = self._packed("mapState.removeKey", key)
        self._session.write("mapState.removeKey", MAP_REMOVE, self._variable, packed)
        self._own(group)
        self._writes[packed] = None

    def iterator(self) -> Iterator[tuple[Row, Row]]:
        """The entries as they are now, in an order of their own that is always the same."""
        group = self._applied("mapState.iterator")
        host = self._session.host
        return entries(host, host.get_map(self._variable, group, ENTRIES), self._key.decode, self._value.decode)

    def keys(self) -> Iterator[Row]:
        """The keys as they are now, in the order of :meth:`iterator`."""
        group = self._applied("mapState.keys")
        host = self._session.host
        return rows(host, host.get_map(self._variable, group, KEYS), self._key.decode)

    def values(self) -> Iterator[Row]:
        """The values as they are now, in the order of :meth:`iterator`."""
        group = self._applied("mapState.values")
        host = self._session.host
        return rows(host, host.get_map(self._variable, group, VALUES), self._value.decode)

    def clear(self) -> None:
        """Removes all entries."""
        group = self._session.group_in_hand("mapState.clear")
        self._session.write("mapState.clear", CLEAR, self._variable, b"")
        self._own(group)
        self._writes.clear()
        self._cleared = True

    def _packed(self, operation: str, key: Any) -> tuple[int, bytes]:
        group = self._session.group_in_hand(operation)
        packed = self._key.encode(key)
        if len(self._key.schema) == 1 and packed[0] & 1:
            raise Fault(NULL_VALUE, "the key of a map entry is NULL")
        return group, packed

    def _look_up(self, operation: str, key: Any) -> tuple[int, bytes, bool]:
        """The group, the packed key, and whether the pending writes know its value."""
        group, packed = self._packed(operation, key)
        own = self._group == group and self._generation == self._session.generation
        return group, packed, own and (self._cleared or packed in self._writes)

    def _own(self, group: int) -> None:
        """Forgets the writes of another group, and those that were applied."""
        generation = self._session.generation
        if self._group != group or self._generation != generation:
            self._group, self._generation, self._cleared = group, generation, False
            self._writes.clear()

    def _applied(self, operation: str) -> int:
        """The group in hand, with its writes applied."""
        group = self._session.group_in_hand(operation)
        if self._generation == self._session.generation and (self._cleared or self._writes):
            self._session.apply()
        return group
