"""What all that a processor holds shares: the group in hand, the pending ops, the chunk that was pulled last.

Invariants: ops are applied before the next chunk is pulled; a read that may miss a pending write applies it first;
what is known of a group's values is forgotten when the group changes. A fault of ``apply`` fails the call even if the
author catches it, since the ops after it are gone.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Generator, Iterator
from typing import TYPE_CHECKING, Any, NoReturn

from .codec.check import refused
from .errors import CONTRACT_BROKEN, INVALID_HANDLE_STATE, Fault
from .host import ApplyFault, Host
from .types import StructType

if TYPE_CHECKING:
    from .state import ValueState

#: Bytes at which pending ops are applied. More buys no speed, and the host holds a copy.
APPLY_AT_BYTES = 64 << 10
#: Pieces of pending ops at which they are applied; each has at most `LARGE_PIECE_BYTES`, or was counted.
APPLY_AT_PIECES = 512
LARGE_PIECE_BYTES = 256

VALUE_PUT, CLEAR, LIST_PUT, LIST_APPEND, MAP_PUT, MAP_REMOVE, TIMER_REGISTER, TIMER_DELETE, EMIT = range(1, 10)
#: Of an op: `op, variable, group, length`.
OP_HEAD = struct.Struct("<IIII")

#: Rows of the group came in the chunk before; more follow in the next one.
CONTINUED, CONTINUES = 1, 2
CHUNK_HEAD = struct.Struct("<II8x")
#: Of a group: `group, flags, rows, key_length, length`.
GROUP_HEAD = struct.Struct("<IIIII4x")
LENGTH = struct.Struct("<II")


class Session:
    """One call of an export after the other, on one instance."""

    def __init__(self, host: Host, time_mode: str) -> None:
        self.host = host
        self.time_mode = time_mode
        #: The group whose handler runs. None where there is none: in `init`, in `close`.
        self.group: int | None = None
        #: Pieces of ops that were not applied, each one or more ops.
        self.ops: list[bytes] = []
        #: Grows when ops are applied; a write noted under another number is known to the host.
        self.generation = 0
        #: The value states by their number.
        self.values: dict[int, ValueState] = {}
        self._large_bytes = 0
        self._fault: ApplyFault | None = None
        self._pulled: bytes | None = None

    # --- walking the input of a call

    def next_chunk(self) -> bytes | None:
        """The chunk to walk now: the one that the rows of a long group have led to, or the next one."""
        pulled, self._pulled = self._pulled, None
        return pulled if pulled is not None else self._pull()

    def prefetched(self, chunk: bytes, count: int) -> list[ValueState]:
        """The value states that the groups of a chunk carry, in order."""
        return [self.values[variable] for variable in struct.unpack_from(f"<{count}I", chunk, CHUNK_HEAD.size)]

    def rows_over_chunks(
        self, chunk: bytes, at: int, count: int, rows: Callable[[bytes, int, int], list[Any]]
    ) -> Iterator[Any]:
        """The rows of the group in hand, which go on in the next chunk."""
        group = self.group
        while True:
            yield from rows(chunk, at, count)
            pulled = self._pull()
            if pulled is None:
                raise Fault(CONTRACT_BROKEN, "the host announced more rows of a group than it sent")
            self._pulled = chunk = pulled
            _, states = CHUNK_HEAD.unpack_from(chunk)
            at = CHUNK_HEAD.size + (states * 4 + 7 & -8)
            same, flags, count, key_length, _ = GROUP_HEAD.unpack_from(chunk, at)
            if same != group:
                raise Fault(CONTRACT_BROKEN, "the host announced more rows of a group than it sent")
            at += GROUP_HEAD.size + key_length
            for _ in range(states):
                at += LENGTH.size + int(LENGTH.unpack_from(chunk, at)[0])
            if not flags & CONTINUES:
                yield from rows(chunk, at, count)
                return

    def leave_group(self) -> None:
        """The handlers of a call are done."""
        self.group = None
        for state in self.values.values():
            state.forget()

    def _pull(self) -> bytes | None:
        self.apply()
        # The number of a group may mean another one from here on, so nothing is pending under this generation.
        self.generation += 1
        return self.host.next_chunk()

    # --- writing

    def write(self, operation: str, op: int, variable: int, payload: bytes) -> None:
        """Adds an op for the group in hand."""
        group = self.group_in_hand(operation)
        self.ops.append(OP_HEAD.pack(op, variable, group, len(payload)) + payload)
        if len(payload) > LARGE_PIECE_BYTES or len(self.ops) > APPLY_AT_PIECES:
            self.make_room(len(payload))

    def make_room(self, size: int) -> None:
        """Called when a large piece of `size` bytes was added, or many pieces."""
        self._large_bytes += size
        if self._large_bytes > APPLY_AT_BYTES or len(self.ops) > APPLY_AT_PIECES:
            self.apply()

    def apply(self) -> None:
        """Applies what is pending."""
        if self._fault is not None:
            raise self._fault
        if not self.ops:
            return
        ops = b"".join(self.ops)
        self.ops.clear()
        self.generation += 1
        self._large_bytes = 0
        try:
            self.host.apply(ops)
        except ApplyFault as fault:
            fault.group = _group_of(ops, fault.op)
            self._fault = fault
            raise

    # --- misuse

    def group_in_hand(self, operation: str) -> int:
        """The group whose handler runs; a fault where there is none."""
        if self.group is None:
            raise Fault(
                INVALID_HANDLE_STATE,
                f"`{operation}` needs a grouping key: it works in handleInputRows, handleExpiredTimer and "
                "handleInitialState, not in init or close",
            )
        return self.group

    def refuse(self, operation: str, values: tuple[Any, ...], schema: StructType) -> NoReturn:
        """Raises why a row could not be written."""
        self.group_in_hand(operation)
        raise refused(values, schema, False) from None

    def refuse_emitted(self, result: Any, row: Any, schema: StructType, error: Exception) -> NoReturn:
        """Raises why a row could not be emitted, where the author's generator yielded it."""
        fault = error if isinstance(error, Fault) else refused(row, schema, False)
        fault.__suppress_context__ = True
        if isinstance(result, Generator):
            result.throw(fault)
        raise fault


def _group_of(ops: bytes, op: int) -> int | None:
    """The group of op number `op`."""
    at = 0
    for _ in range(op):
        at += OP_HEAD.size + int(OP_HEAD.unpack_from(ops, at)[3])
    return int(OP_HEAD.unpack_from(ops, at)[2])
