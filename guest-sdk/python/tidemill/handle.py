"""What ``init`` is given: the query's settings, the making of state variables, and the timers of the key in hand."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from .errors import INVALID_ARGUMENT, INVALID_HANDLE_STATE, INVALID_TTL, Fault
from .host import Query
from .session import Session
from .state import ListState, MapState, ValueState, value_state
from .timers import Timers
from .types import Schema, StructField, StructType, schema_of

#: Value states that a chunk carries at most.
PREFETCHED_MAX = 8


class QueryInfo:
    """Which query, which start of it, and which batch."""

    __slots__ = ("_batch_id", "_query_id", "_run_id")

    def __init__(self, query: Query) -> None:
        self._query_id = query.query_id
        self._run_id = query.run_id
        self._batch_id = query.batch_id

    def getQueryId(self) -> str:
        """The same over restarts."""
        return self._query_id

    def getRunId(self) -> str:
        """Of this start of the query."""
        return self._run_id

    def getBatchId(self) -> int:
        """Number of the batch, from 0."""
        return self._batch_id


class StatefulProcessorHandle:
    """The query that a processor runs in.

    State variables are made in ``init`` and only there. A variable that has the name and kind of an earlier one finds
    its state; its schema may gain columns, lose some, reorder them and widen numbers. Timers are those of the key
    whose handler runs.
    """

    def __init__(self, session: Session, query: Query) -> None:
        self._session = session
        self._query = query
        self._timers = Timers(session)
        self._in_init = True

    def getValueState(self, stateName: str, schema: Schema, ttlDurationMs: int | None = None) -> ValueState:
        """Makes a value state. With a TTL its value expires so many milliseconds after it was written; 0 is never."""
        value = _stored(schema)
        ttl_ms = self._check("getValueState", stateName, ttlDurationMs)
        variable = self._session.host.get_value_state(stateName, value.columns(), ttl_ms)
        state = value_state(self._session, variable, value)
        self._session.values[variable] = state
        return state

    def getListState(self, stateName: str, schema: Schema, ttlDurationMs: int | None = None) -> ListState:
        """Makes a list state. With a TTL each element expires so many milliseconds after it was written."""
        element = _stored(schema)
        ttl_ms = self._check("getListState", stateName, ttlDurationMs)
        variable = self._session.host.get_list_state(stateName, element.columns(), ttl_ms)
        return ListState(self._session, variable, element)

    def getMapState(
        self, stateName: str, userKeySchema: Schema, valueSchema: Schema, ttlDurationMs: int | None = None
    ) -> MapState:
        """Makes a map state. With a TTL each entry expires so many milliseconds after it was written."""
        key, value = _stored(userKeySchema), _stored(valueSchema)
        ttl_ms = self._check("getMapState", stateName, ttlDurationMs)
        variable = self._session.host.get_map_state(stateName, key.columns(), value.columns(), ttl_ms)
        return MapState(self._session, variable, key, value)

    def deleteIfExists(self, stateName: str) -> None:
        """Drops a variable that an earlier version of the processor made, for all grouping keys."""
        self._check("deleteIfExists", stateName, None)
        self._session.host.delete_if_exists(stateName)

    def registerTimer(self, expiryTimestampMs: int) -> None:
        """Registers a timer, in milliseconds since the epoch; no effect if there is one at that time."""
        self._timers.register(expiryTimestampMs)

    def deleteTimer(self, expiryTimestampMs: int) -> None:
        """Deletes a timer; no effect if there is none. If it is due in this batch, it does not fire."""
        self._timers.delete(expiryTimestampMs)

    def listTimers(self) -> Iterator[int]:
        """The timers as they are now, earliest first; the one that fires is among them."""
        return self._timers.list()

    def getQueryInfo(self) -> QueryInfo:
        """Ids of the query, of this start of it, and of the batch."""
        return QueryInfo(self._query)

    @property
    def parameters(self) -> Mapping[str, str]:
        """The settings of the query, by name. Those that begin with ``tidemill.`` are the host's."""
        return MappingProxyType(self._query.parameters)

    @property
    def timeMode(self) -> str:
        """When timers and TTL move: ``None``, ``ProcessingTime`` or ``EventTime``."""
        return self._query.time_mode

    @property
    def outputMode(self) -> str:
        """What emitted rows mean to a sink with keys: ``Append`` or ``Update``."""
        return self._query.output_mode

    def end_init(self) -> list[int]:
        """No variables are made from here on. Answers those that each group shall bring along."""
        self._in_init = False
        return list(self._session.values)[:PREFETCHED_MAX]

    def _check(self, operation: str, name: str, ttl_ms: int | None) -> int | None:
        if not self._in_init:
            raise Fault(INVALID_HANDLE_STATE, f"`{operation}` works in init only; keep what it answers in `self`")
        if not isinstance(name, str):
            raise Fault(INVALID_ARGUMENT, f"`{operation}`: the name of a state variable is a str, not {name!r}")
        if ttl_ms is None:
            return None
        if not isinstance(ttl_ms, int) or not 0 <= ttl_ms < 1 << 64:
            raise Fault(INVALID_TTL, f"`{operation}` of `{name}`: a TTL is an int of milliseconds, not {ttl_ms!r}")
        return int(ttl_ms) or None


def _stored(schema: Schema) -> StructType:
    """A schema without NOT NULL at its top, so that columns can be added later."""
    return StructType([StructField(field.name, field.dataType) for field in schema_of(schema)])
