"""The host as a native test sees it: the contract of ``wit/world.wit`` over plain dicts, byte for byte.

Written to be compared with, not to be fast. Breaches of the contract that a host answers with a trap are
:class:`AssertionError` here.
"""

from __future__ import annotations

import struct
from collections.abc import Callable

from .. import session as contract
from ..errors import INVALID_HANDLE_STATE, Fault
from ..host import ENTRIES, KEYS, ApplyFault
from .store import LIST, MAP, VALUE, Store, Stored

#: A group of a phase: its packed key and its packed rows.
Group = tuple[bytes, list[bytes]]

_NAME_CHARACTERS_MAX = 300


class MemoryHost:
    """The host of one batch."""

    def __init__(
        self,
        store: Store,
        time_mode: str,
        now_ms: int,
        groups_per_chunk: int,
        rows_per_chunk: int,
        log: Callable[[int, str], None],
    ) -> None:
        self.store = store
        self.log = log
        self.output: list[bytes] = []
        #: How often ops were applied, and how often a read asked.
        self.applied = self.asked = 0
        self._time_mode = time_mode
        self._now_ms = now_ms
        self._groups_per_chunk = groups_per_chunk
        self._rows_per_chunk = rows_per_chunk
        self._phase = "init"
        self._names: list[str] = []
        self._ttls: list[int | None] = []
        self._dropped: list[str] = []
        self._waiting: list[Group] = []
        self._continued = False
        #: The keys of the groups of the chunk in hand, by number.
        self._keys: dict[int, bytes] = {}
        self._numbered = 0
        self._cursors: dict[int, list[bytes] | list[int]] = {}
        self._cursors_opened = 0

    def open(self, phase: str, groups: list[Group]) -> None:
        """Opens a phase with what it feeds to the processor."""
        self._phase = phase
        self._waiting = [(key, list(rows)) for key, rows in groups]
        self._keys = {}
        self._continued = False

    # --- input

    def next_chunk(self) -> bytes | None:
        assert self._phase not in ("init", "close"), f"input.next in {self._phase}"
        continued_id = self._numbered if self._continued else None
        self._keys = {}
        self._cursors.clear()
        if not self._waiting:
            return None
        values = [variable for variable, name in enumerate(self._names) if self.store.variables[name].kind == VALUE][:8]
        groups: list[bytes] = []
        room = self._rows_per_chunk
        while self._waiting and len(groups) < self._groups_per_chunk and room > 0:
            key, rows = self._waiting[0]
            taken, left = rows[:room], rows[room:]
            room -= len(taken)
            continued = continued_id is not None and not groups
            if not continued:
                self._numbered += 1
            self._keys[self._numbered] = key
            flags = (contract.CONTINUED if continued else 0) | (contract.CONTINUES if left else 0)
            prefetched = [self._prefetched(variable, key, continued) for variable in values]
            body = key + b"".join(prefetched) + _packed_rows(taken)
            head = contract.GROUP_HEAD.pack(self._numbered, flags, len(taken), len(key), len(body))
            groups.append(head + body)
            self._continued = bool(left)
            if left:
                self._waiting[0] = (key, left)
                break
            self._waiting.pop(0)
        numbers = struct.pack(f"<{len(values)}I", *values)
        return contract.CHUNK_HEAD.pack(len(groups), len(values)) + numbers + bytes(-len(numbers) & 7) + b"".join(groups)

    def _prefetched(self, variable: int, key: bytes, continued: bool) -> bytes:
        if continued:
            return contract.LENGTH.pack(0, 2)
        items = self.store.items(self._names[variable], key, self._now_ms)
        return contract.LENGTH.pack(len(items[0][1]), 1) + items[0][1] if items else contract.LENGTH.pack(0, 0)

    # --- state

    def get_value_state(self, name: str, value: str, ttl_ms: int | None) -> int:
        return self._declare(name, VALUE, (value,), ttl_ms)

    def get_list_state(self, name: str, element: str, ttl_ms: int | None) -> int:
        return self._declare(name, LIST, (element,), ttl_ms)

    def get_map_state(self, name: str, key: str, value: str, ttl_ms: int | None) -> int:
        return self._declare(name, MAP, (key, value), ttl_ms)

    def delete_if_exists(self, name: str) -> None:
        self._only_in_init("deleteIfExists")
        if name in self._names:
            raise _duplicate(name)
        self._dropped.append(name)
        self.store.drop(name)

    def exists(self, state: int, group: int) -> bool:
        return bool(self._items(state, group))

    def get_value(self, state: int, group: int) -> bytes | None:
        items = self._items(state, group)
        return items[0][1] if items else None

    def get_list(self, state: int, group: int) -> tuple[bytes, int | None]:
        return self._page([_packed_rows([row]) for _, row in self._items(state, group)])

    def get_map_value(self, state: int, group: int, key: bytes) -> bytes | None:
        return dict(self._items(state, group)).get(key)

    def contains_key(self, state: int, group: int, key: bytes) -> bool:
        return self.get_map_value(state, group, key) is not None

    def get_map(self, state: int, group: int, part: int) -> tuple[bytes, int | None]:
        def chosen(key: bytes, value: bytes) -> list[bytes]:
            return [key, value] if part == ENTRIES else [key] if part == KEYS else [value]

        return self._page([_packed_rows(chosen(key, value)) for key, value in self._items(state, group)])

    def next_page(self, cursor: int) -> tuple[bytes, int | None]:
        return self._page([item for item in self._rest(cursor) if isinstance(item, bytes)])

    def list_timers(self, group: int) -> tuple[list[int], int | None]:
        return self._timer_page(self.store.timers(self._keys[group]))

    def next_timers(self, cursor: int) -> tuple[list[int], int | None]:
        return self._timer_page([item for item in self._rest(cursor) if isinstance(item, int)])

    # --- effects

    def apply(self, ops: bytes) -> None:
        self.applied += 1
        at = number = 0
        while at < len(ops):
            op, variable, group, length = contract.OP_HEAD.unpack_from(ops, at)
            at += contract.OP_HEAD.size
            assert length % 8 == 0 and at + length <= len(ops), "broken lengths"
            try:
                self._apply(op, variable, self._keys[group], ops[at : at + length])
            except Fault as fault:
                raise ApplyFault(number, fault.code, fault.message) from None
            at += length
            number += 1

    def _apply(self, op: int, variable: int, key: bytes, payload: bytes) -> None:
        if op == contract.EMIT:
            if self._phase == "handleInitialState":
                raise Fault(INVALID_HANDLE_STATE, "`emit` in handleInitialState")
            self.output.append(payload)
        elif op in (contract.TIMER_REGISTER, contract.TIMER_DELETE):
            expiry_ms = int.from_bytes(payload, "little", signed=True)
            (self.store.register_timer if op == contract.TIMER_REGISTER else self.store.delete_timer)(key, expiry_ms)
        else:
            self._apply_to_variable(op, variable, key, payload)

    def _apply_to_variable(self, op: int, variable: int, key: bytes, payload: bytes) -> None:
        name, ttl_ms = self._names[variable], self._ttls[variable]
        expiry_ms = None if ttl_ms is None else self._now_ms + ttl_ms
        if op == contract.VALUE_PUT:
            self.store.put(name, key, b"", Stored(payload, expiry_ms))
        elif op == contract.CLEAR:
            self.store.clear(name, key)
        elif op in (contract.LIST_PUT, contract.LIST_APPEND):
            if op == contract.LIST_PUT:
                self.store.clear(name, key)
            for row in _rows_of(payload):
                self.store.append(name, key, Stored(row, expiry_ms))
        elif op == contract.MAP_PUT:
            length, _ = contract.LENGTH.unpack_from(payload)
            entry, value = payload[8 : 8 + length], payload[8 + length :]
            self.store.put(name, key, entry, Stored(value, expiry_ms))
        else:
            assert op == contract.MAP_REMOVE, f"unknown op {op}"
            self.store.remove(name, key, payload)

    # --- helpers of the above

    def _declare(self, name: str, kind: str, schemas: tuple[str, ...], ttl_ms: int | None) -> int:
        self._only_in_init("getState")
        _check_name(name)
        if name in self._names or name in self._dropped:
            raise _duplicate(name)
        if ttl_ms is not None and self._time_mode != "ProcessingTime":
            raise Fault(
                "STATEFUL_PROCESSOR_INCORRECT_TIME_MODE_TO_ASSIGN_TTL",
                f"`{name}` has a TTL, which needs time mode processing-time",
            )
        self.store.declare(name, kind, schemas)
        self._names.append(name)
        self._ttls.append(ttl_ms)
        return len(self._names) - 1

    def _only_in_init(self, operation: str) -> None:
        if self._phase != "init":
            raise Fault(INVALID_HANDLE_STATE, f"`{operation}` works in init only")

    def _items(self, state: int, group: int) -> list[tuple[bytes, bytes]]:
        self.asked += 1
        return self.store.items(self._names[state], self._keys[group], self._now_ms)

    def _page(self, items: list[bytes]) -> tuple[bytes, int | None]:
        """The first rows of a read; the rest stays open. An item, a row or an entry of two, is never cut."""
        rest = items[self._rows_per_chunk :]
        return b"".join(items[: self._rows_per_chunk]), self._open(rest) if rest else None

    def _timer_page(self, expiries_ms: list[int]) -> tuple[list[int], int | None]:
        rest = expiries_ms[self._rows_per_chunk :]
        return expiries_ms[: self._rows_per_chunk], self._open(rest) if rest else None

    def _open(self, rest: list[bytes] | list[int]) -> int:
        self._cursors_opened += 1
        self._cursors[self._cursors_opened] = rest
        return self._cursors_opened

    def _rest(self, cursor: int) -> list[bytes] | list[int]:
        if cursor not in self._cursors:
            raise Fault("INVALID_CURSOR", "a cursor that is not open")
        return self._cursors.pop(cursor)


def _packed_rows(rows: list[bytes]) -> bytes:
    return b"".join(contract.LENGTH.pack(len(row), 0) + row for row in rows)


def _rows_of(packed: bytes) -> list[bytes]:
    rows: list[bytes] = []
    at = 0
    while at < len(packed):
        length, _ = contract.LENGTH.unpack_from(packed, at)
        rows.append(packed[at + 8 : at + 8 + length])
        at += 8 + length
    return rows


def _check_name(name: str) -> None:
    if name.startswith("$"):
        raise Fault("STATE_STORE_CANNOT_CREATE_COLUMN_FAMILY_WITH_RESERVED_CHARS", f"`{name}` begins with `$`")
    if not name or name.strip() != name or name == "default" or len(name) > _NAME_CHARACTERS_MAX or not name.isprintable():
        raise Fault("STATE_STORE_CANNOT_USE_COLUMN_FAMILY_WITH_INVALID_NAME", f"`{name}` is no name of a state variable")


def _duplicate(name: str) -> Fault:
    return Fault(
        "STATEFUL_PROCESSOR_DUPLICATE_STATE_VARIABLE_DEFINED", f"`{name}` is declared twice, or declared and deleted"
    )
