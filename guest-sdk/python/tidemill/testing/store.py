"""State, timers and TTL over plain dicts, by the packed grouping key."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from ..errors import Fault

VALUE, LIST, MAP = "value", "list", "map"


@dataclass
class Stored:
    """A packed row and when it expires, if it does."""

    row: bytes
    expiry_ms: int | None

    def lives(self, now_ms: int) -> bool:
        return self.expiry_ms is None or now_ms < self.expiry_ms


@dataclass
class Variable:
    """A state variable: what it holds by key. Elements are named by their place, entries by their key, a value by b''."""

    kind: str
    #: DDL of its rows; of a map, of keys and values.
    schemas: tuple[str, ...]
    of_key: dict[bytes, dict[bytes, Stored]] = field(default_factory=dict)


class Store:
    """All that a query keeps from batch to batch."""

    def __init__(self) -> None:
        self.variables: dict[str, Variable] = {}
        self._timers: dict[bytes, set[int]] = {}
        self._elements = 0

    def declare(self, name: str, kind: str, schemas: tuple[str, ...]) -> None:
        known = self.variables.setdefault(name, Variable(kind, schemas))
        if (known.kind, known.schemas) != (kind, schemas):
            raise Fault("STATE_CHANGED", f"`{name}` was another variable; state in memory does not evolve")

    def drop(self, name: str) -> None:
        self.variables.pop(name, None)

    def items(self, name: str, key: bytes, now_ms: int) -> list[tuple[bytes, bytes]]:
        """What a key has in a variable: elements in order of insertion, entries in order of their keys."""
        variable = self.variables.get(name)
        if variable is None:
            return []
        items = sorted(variable.of_key.get(key, {}).items(), key=lambda item: item[0])
        return [(at, stored.row) for at, stored in items if stored.lives(now_ms)]

    def put(self, name: str, key: bytes, at: bytes, stored: Stored) -> None:
        self.variables[name].of_key.setdefault(key, {})[at] = stored

    def append(self, name: str, key: bytes, stored: Stored) -> None:
        self._elements += 1
        self.put(name, key, self._elements.to_bytes(8, "big"), stored)

    def remove(self, name: str, key: bytes, at: bytes) -> None:
        self.variables[name].of_key.get(key, {}).pop(at, None)

    def clear(self, name: str, key: bytes) -> None:
        self.variables[name].of_key.pop(key, None)

    def evict(self, now_ms: int) -> None:
        """Removes what has expired."""
        for variable in self.variables.values():
            for items in variable.of_key.values():
                for at in [at for at, stored in items.items() if not stored.lives(now_ms)]:
                    del items[at]

    # --- timers

    def timers(self, key: bytes) -> list[int]:
        return sorted(self._timers.get(key, ()))

    def register_timer(self, key: bytes, expiry_ms: int) -> None:
        self._timers.setdefault(key, set()).add(expiry_ms)

    def delete_timer(self, key: bytes, expiry_ms: int) -> None:
        self._timers.get(key, set()).discard(expiry_ms)

    def due(self, threshold_ms: int) -> Iterator[tuple[bytes, list[int]]]:
        """Keys with timers that are due, that of the earliest first."""
        due = [(key, [ms for ms in self.timers(key) if ms <= threshold_ms]) for key in self._timers]
        yield from sorted((item for item in due if item[1]), key=lambda item: (item[1][0], item[0]))
