"""A list per grouping key."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from ..codec import codec_of
from ..errors import EMPTY_LIST_VALUE, NULL_VALUE, Fault
from ..row import Row
from ..session import APPLY_AT_BYTES, CLEAR, LIST_APPEND, LIST_PUT, Session
from ..types import StructType
from .pages import rows


class ListState:
    """A list per grouping key, in order of insertion: rows of the schema that it was made with."""

    __slots__ = ("_decode", "_encode", "_session", "_variable", "_written")

    def __init__(self, session: Session, variable: int, schema: StructType) -> None:
        self._session = session
        self._variable = variable
        codec = codec_of(schema)
        self._decode = codec.decode
        self._encode = codec.encode_element
        #: Generation of the last write.
        self._written = -1

    def exists(self) -> bool:
        """Whether there is an element."""
        group = self._applied("listState.exists")
        return self._session.host.exists(self._variable, group)

    def get(self) -> Iterator[Row]:
        """The elements as they are now; what is written while the iterator is read does not show in it."""
        group = self._applied("listState.get")
        host = self._session.host
        return rows(host, host.get_list(self._variable, group), self._decode)

    def put(self, newState: Iterable[Any]) -> None:
        """Replaces the list. An empty one is refused: that is :meth:`clear`."""
        self._write("listState.put", LIST_PUT, newState)

    def appendValue(self, newState: Any) -> None:
        """Adds an element at the end."""
        packed = self._encode(newState)
        self._session.write("listState.appendValue", LIST_APPEND, self._variable, packed)
        self._written = self._session.generation

    def appendList(self, newState: Iterable[Any]) -> None:
        """Adds elements at the end. An empty list is refused."""
        self._write("listState.appendList", LIST_APPEND, newState)

    def clear(self) -> None:
        """Removes all elements."""
        self._session.write("listState.clear", CLEAR, self._variable, b"")
        self._written = self._session.generation

    def _applied(self, operation: str) -> int:
        """The group in hand, with its writes applied."""
        group = self._session.group_in_hand(operation)
        if self._written == self._session.generation:
            self._session.apply()
        return group

    def _write(self, operation: str, op: int, elements: Iterable[Any]) -> None:
        self._session.group_in_hand(operation)
        if elements is None:
            raise Fault(NULL_VALUE, f"`{operation}` takes a list of rows, not None")
        # Packed before the first op, so that a refused element leaves the list as it was.
        packed = [self._encode(element) for element in elements]
        if not packed:
            raise Fault(EMPTY_LIST_VALUE, f"`{operation}` with no elements; `clear` removes a list")
        pieces: list[bytes] = []
        size = 0
        for element in packed:
            pieces.append(element)
            size += len(element)
            if size >= APPLY_AT_BYTES:
                # What does not fit one op is appended by the next.
                self._session.write(operation, op, self._variable, b"".join(pieces))
                op, size = LIST_APPEND, 0
                pieces.clear()
        if pieces:
            self._session.write(operation, op, self._variable, b"".join(pieces))
        self._written = self._session.generation
