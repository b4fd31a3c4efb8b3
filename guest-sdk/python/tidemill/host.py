"""What the SDK asks of a host: the imports of ``wit/world.wit`` over plain Python values.

``component.py`` is the real host, ``testing/memory.py`` one for tests.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from .errors import Fault

#: Which half of a map's entries to read.
KEYS, VALUES, ENTRIES = 0, 1, 2


class ApplyFault(Fault):
    """The host refused an op: which one of the call, counted from 0, and why. Those after it are gone."""

    def __init__(self, op: int, code: str, message: str) -> None:
        super().__init__(code, message)
        self.op = op
        #: The group of the op.
        self.group: int | None = None


class Host(Protocol):
    """A state or a group is the number that the host gave it; ``bytes`` are packed rows, lists of rows, chunks and ops."""

    def next_chunk(self) -> bytes | None: ...

    def get_value_state(self, name: str, value: str, ttl_ms: int | None) -> int: ...
    def get_list_state(self, name: str, element: str, ttl_ms: int | None) -> int: ...
    def get_map_state(self, name: str, key: str, value: str, ttl_ms: int | None) -> int: ...
    def delete_if_exists(self, name: str) -> None: ...

    def exists(self, state: int, group: int) -> bool: ...
    def get_value(self, state: int, group: int) -> bytes | None: ...
    def get_list(self, state: int, group: int) -> tuple[bytes, int | None]: ...
    def get_map_value(self, state: int, group: int, key: bytes) -> bytes | None: ...
    def contains_key(self, state: int, group: int, key: bytes) -> bool: ...
    def get_map(self, state: int, group: int, part: int) -> tuple[bytes, int | None]: ...
    def next_page(self, cursor: int) -> tuple[bytes, int | None]: ...

    def list_timers(self, group: int) -> tuple[list[int], int | None]: ...
    def next_timers(self, cursor: int) -> tuple[list[int], int | None]: ...

    def apply(self, ops: bytes) -> None: ...

    def log(self, level: int, message: str) -> None: ...


@dataclass(frozen=True)
class Query:
    """What a processor is told about the query."""

    query_id: str
    run_id: str
    batch_id: int
    #: ``None``, ``ProcessingTime`` or ``EventTime``.
    time_mode: str
    #: ``Append`` or ``Update``.
    output_mode: str
    key: str
    input: str
    initial_state: str | None
    parameters: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Plan:
    """What a processor gives and wants."""

    output: str
    columns: str | None
    initial_state: str | None
    key: str | None
    prefetch: list[int]
