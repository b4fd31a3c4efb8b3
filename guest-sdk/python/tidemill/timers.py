"""Timers of the group in hand, and the times of the batch.

The rules of a timer that fires (``wit/README.md``, "Timers") live here: its deletion is queued before its handler
runs, while the handler's list still shows it; a due timer that a handler deletes does not fire in this phase.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

from .errors import INVALID_ARGUMENT, INVALID_TIME_MODE, Fault
from .session import TIMER_DELETE, TIMER_REGISTER, Session

_EXPIRY = struct.Struct("<q")


class TimerValues:
    """The only clock there is; it stands still during a batch."""

    __slots__ = ("_processing_time_ms", "_watermark_ms")

    def __init__(self, processing_time_ms: int, watermark_ms: int) -> None:
        self._processing_time_ms = processing_time_ms
        self._watermark_ms = watermark_ms

    def getCurrentProcessingTimeInMs(self) -> int:
        """The time of the batch, milliseconds since the epoch."""
        return self._processing_time_ms

    def getCurrentWatermarkInMs(self) -> int:
        """The watermark, milliseconds since the epoch; 0 until there is one."""
        return self._watermark_ms


class ExpiredTimerInfo:
    """The timer that fires."""

    __slots__ = ("_expiry_ms",)

    def __init__(self, expiry_ms: int) -> None:
        self._expiry_ms = expiry_ms

    def getExpiryTimeInMs(self) -> int:
        """When it was to fire, milliseconds since the epoch."""
        return self._expiry_ms


class Timers:
    """Registers, deletes and lists the timers of the group in hand."""

    def __init__(self, session: Session) -> None:
        self._session = session
        #: Generation of the last write.
        self._written = -1
        self._firing: int | None = None
        #: Those that handlers of the group in hand deleted in the timer phase.
        self._deleted: set[int] = set()

    def register(self, expiry_ms: int) -> None:
        self._write("registerTimer", TIMER_REGISTER, expiry_ms)

    def delete(self, expiry_ms: int) -> None:
        self._write("deleteTimer", TIMER_DELETE, expiry_ms)
        # Outside of the timer phase none was handed out, so the host looks at its own list.
        if self._firing is not None:
            self._deleted.add(expiry_ms)

    def list(self) -> Iterator[int]:
        group = self._group("listTimers")
        if self._written == self._session.generation:
            self._session.apply()
        firing = None if self._firing in self._deleted else self._firing
        return self._merged(self._session.host.list_timers(group), firing)

    def _merged(self, page: tuple[Any, int | None], firing: int | None) -> Iterator[int]:
        """The listed timers and the one that fires, whose deletion is applied already."""
        expiries, rest = page
        while True:
            for expiry_ms in expiries:
                if firing is not None and firing <= expiry_ms:
                    # Registered anew it is listed too; it is one timer.
                    if firing < expiry_ms:
                        yield firing
                    firing = None
                yield expiry_ms
            if rest is None:
                break
            expiries, rest = self._session.host.next_timers(rest)
        if firing is not None:
            yield firing

    def _write(self, operation: str, op: int, expiry_ms: int) -> None:
        self._group(operation)
        try:
            payload = _EXPIRY.pack(expiry_ms)
        except struct.error:
            raise Fault(
                INVALID_ARGUMENT, f"`{operation}` takes an int of milliseconds since the epoch, not {expiry_ms!r}"
            ) from None
        self._session.write(operation, op, 0, payload)
        self._written = self._session.generation

    def _group(self, operation: str) -> int:
        if self._session.time_mode == "None":
            raise Fault(
                INVALID_TIME_MODE,
                f"`{operation}` needs a query with time mode processing-time or event-time; this one has none",
            )
        return self._session.group_in_hand(operation)

    # --- for the timer phase

    def begin_group(self) -> None:
        """A new group: nothing of it was deleted yet."""
        self._deleted.clear()

    def begin_firing(self, expiry_ms: int) -> bool:
        """Prepares the firing of a timer; False if a handler of its group deleted it in this phase."""
        if expiry_ms in self._deleted:
            return False
        self._firing = None
        self._write("deleteTimer", TIMER_DELETE, expiry_ms)
        self._firing = expiry_ms
        return True

    def end_phase(self) -> None:
        """No timer fires any more."""
        self._firing = None
        self._deleted.clear()
