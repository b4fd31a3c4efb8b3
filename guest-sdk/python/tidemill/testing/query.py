"""A query that runs a processor batch by batch."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from .. import log
from ..codec import codec_of
from ..errors import INVALID_ARGUMENT, Fault
from ..host import Plan, Query
from ..instance import Instance
from ..processor import StatefulProcessor, exported_of
from ..row import Row
from ..timers import TimerValues
from ..types import Schema, StructType, schema_of
from ..walk import EXPIRED_TIMER, EXPIRIES, INITIAL_STATE, INPUT_ROWS
from .memory import Group, MemoryHost
from .store import Store

_LEVELS = ["trace", "debug", "info", "warn", "error"]


class TestQuery:
    """A query that runs a processor batch by batch, on a fresh instance each time, as a host does.

    ``key``, ``input`` and ``initialState`` are the query's columns; without them they are those of ``tidemill.export``.
    It begins without state, at time 0 and without a watermark. A key of one column may be given without its tuple.
    """

    __test__ = False  # pytest: this is no test

    def __init__(
        self,
        processor: type[StatefulProcessor],
        *,
        time_mode: str = "None",
        output_mode: str = "Append",
        parameters: Mapping[str, str] | None = None,
        key: Schema | None = None,
        input: Schema | None = None,
        initialState: Schema | None = None,
    ) -> None:
        if time_mode not in ("None", "ProcessingTime", "EventTime"):
            raise Fault(INVALID_ARGUMENT, f"time_mode is None, ProcessingTime or EventTime, not {time_mode!r}")
        exported = exported_of(processor)
        self._exported = exported
        self._time_mode = time_mode
        self._output_mode = output_mode
        self._parameters = dict(parameters or {})
        self._key = _given("key", exported.key, key)
        self._input = _given("input", exported.input, input)
        self._initial_schema = exported.initial_state if initialState is None else schema_of(initialState)
        self._store = Store()
        self._batch_id = 0
        self._time_ms = self._watermark_ms = 0
        self._chunk = (128, 1024)
        self._rows: dict[bytes, list[bytes]] = {}
        self._initial_rows: dict[bytes, list[bytes]] = {}
        self._log: list[tuple[str, str]] = []

    def small_chunks(self, groups: int, rows: int) -> TestQuery:
        """Makes chunks and pages of at most so many keys and rows, so that a few rows cross their borders."""
        self._chunk = (groups, rows)
        return self

    def set_time_ms(self, processing_time_ms: int) -> TestQuery:
        """Sets the time of the batches to come, milliseconds since the epoch."""
        self._time_ms = processing_time_ms
        return self

    def set_watermark_ms(self, watermark_ms: int) -> TestQuery:
        """Sets the watermark of the batches to come, milliseconds since the epoch."""
        self._watermark_ms = watermark_ms
        return self

    def input(self, key: Any, rows: Iterable[Any]) -> TestQuery:
        """Adds rows of a key to the next batch: tuples, Rows or dicts of the input's columns."""
        self._rows.setdefault(self._packed_key(key), []).extend(map(codec_of(self._input).encode, rows))
        return self

    def initial_state(self, key: Any, rows: Iterable[Any]) -> TestQuery:
        """Adds rows of a key to the initial state."""
        encode = codec_of(_given("initialState", None, self._initial_schema)).encode
        self._initial_rows.setdefault(self._packed_key(key), []).extend(map(encode, rows))
        return self

    def run_batch(self) -> list[Row]:
        """Runs a batch: the input that was added, then timers that are due, then expiry of TTLs.

        Answers what was emitted. A batch that fails raises what the handler raised and has no effect; its input is gone.
        """
        rows, self._rows = self._rows, {}

        def phases(instance: Instance, host: MemoryHost, time: TimerValues) -> None:
            _run(host, INPUT_ROWS, sorted(rows.items()), lambda: instance.handle_input_rows(time))
            _run(host, EXPIRED_TIMER, self._due(host.store), lambda: instance.handle_expired_timer(time))

        return self._run(phases, None)

    def run_initial_state(self) -> None:
        """Runs a bootstrap batch over the initial state that was added. Its timers fire in a later batch."""
        rows, self._initial_rows = self._initial_rows, {}

        def phases(instance: Instance, host: MemoryHost, time: TimerValues) -> None:
            _run(host, INITIAL_STATE, sorted(rows.items()), lambda: instance.handle_initial_state(time))

        self._run(phases, _given("initialState", None, self._initial_schema))

    def value_of(self, name: str, key: Any) -> Row | None:
        """The value that a key has in a value state."""
        items = self._items(name, key)
        return self._decoder(name, 0)(items[0][1], 0) if items else None

    def list_of(self, name: str, key: Any) -> list[Row]:
        """The elements that a key has in a list state."""
        items = self._items(name, key)
        return [self._decoder(name, 0)(row, 0) for _, row in items]

    def map_of(self, name: str, key: Any) -> dict[Row, Row]:
        """The entries that a key has in a map state, in the order in which a processor reads them."""
        items = self._items(name, key)
        return {self._decoder(name, 0, in_key=True)(entry, 0): self._decoder(name, 1)(row, 0) for entry, row in items}

    def timers_of(self, key: Any) -> list[int]:
        """The timers that a key has, earliest first, milliseconds since the epoch."""
        return self._store.timers(self._packed_key(key))

    def take_log(self) -> list[tuple[str, str]]:
        """What was logged since the last call: level and message."""
        taken, self._log = self._log, []
        return taken

    def plan(self) -> Plan:
        """Runs ``init`` alone and answers what the processor gives and wants."""
        return self._instance(copy.deepcopy(self._store), None)[2]

    def _run(self, phases: Callable[[Instance, MemoryHost, TimerValues], None], initial: StructType | None) -> list[Row]:
        # A batch works on a copy, so that one that fails changes nothing.
        instance, host, _ = self._instance(copy.deepcopy(self._store), initial)
        self._batch_id += 1
        phases(instance, host, TimerValues(self._time_ms, self._watermark_ms))
        host.open("close", [])
        instance.close()
        host.store.evict(self._time_ms)
        self._store = host.store
        decode = codec_of(self._exported.output).decode
        return [decode(row, 0) for row in host.output]

    def _instance(self, store: Store, initial: StructType | None) -> tuple[Instance, MemoryHost, Plan]:
        log.send_to(self._keep)
        host = MemoryHost(store, self._time_mode, self._time_ms, *self._chunk, self._keep)
        query = Query(
            query_id="00000000-0000-0000-0000-000000000000",
            run_id="00000000-0000-0000-0000-000000000001",
            batch_id=self._batch_id,
            time_mode=self._time_mode,
            output_mode=self._output_mode,
            key=self._key.columns(),
            input=self._input.columns(),
            initial_state=None if initial is None else initial.columns(),
            parameters={"tidemill.batch-time-ms": str(self._time_ms), "tidemill.seed": "0", **self._parameters},
        )
        instance = Instance(host, query, self._exported)
        return instance, host, instance.init()

    def _due(self, store: Store) -> list[Group]:
        if self._time_mode == "None":
            return []
        threshold_ms = self._time_ms if self._time_mode == "ProcessingTime" else self._watermark_ms
        encode = codec_of(EXPIRIES).encode
        return [(key, [encode((expiry_ms,)) for expiry_ms in due]) for key, due in store.due(threshold_ms)]

    def _items(self, name: str, key: Any) -> list[tuple[bytes, bytes]]:
        return self._store.items(name, self._packed_key(key), self._time_ms)

    def _decoder(self, name: str, row: int, in_key: bool = False) -> Callable[[bytes, int], Row]:
        return codec_of(schema_of(self._store.variables[name].schemas[row]), in_key).decode

    def _keep(self, level: int, message: str) -> None:
        self._log.append((_LEVELS[level], message))

    def _packed_key(self, key: Any) -> bytes:
        return codec_of(self._key, in_key=True).encode(key if isinstance(key, (tuple, dict)) else (key,))


def _run(host: MemoryHost, phase: str, groups: list[Group], call: Callable[[], None]) -> None:
    if groups:
        host.open(phase, groups)
        call()


def _given(name: str, exported: StructType | None, given: Schema | None) -> StructType:
    if given is not None:
        return schema_of(given)
    if exported is None:
        raise Fault(INVALID_ARGUMENT, f"give TestQuery the columns of `{name}`: the processor's export names none")
    return exported
