"""One instance of a processor: the phases of a batch, as the host calls them."""

from __future__ import annotations

from .errors import INITIAL_STATE_NOT_HANDLED, Fault
from .handle import StatefulProcessorHandle
from .host import Host, Plan, Query
from .processor import Exported
from .session import Session
from .timers import TimerValues
from .types import StructType, schema_of
from .walk import EXPIRED_TIMER, EXPIRIES, INITIAL_STATE, INPUT_ROWS, walk


class Instance:
    """A processor between ``init`` and ``close``."""

    def __init__(self, host: Host, query: Query, exported: Exported) -> None:
        self.session = Session(host, query.time_mode)
        self._exported = exported
        self._key = exported.key or schema_of(query.key)
        self._input = exported.input or schema_of(query.input)
        self._initial_state: StructType | None = None
        if query.initial_state is not None:
            self._initial_state = exported.initial_state or schema_of(query.initial_state)
        self._handle = StatefulProcessorHandle(self.session, query)
        self._processor = exported.processor()

    def init(self) -> Plan:
        """Runs the author's ``init``."""
        exported = self._exported
        if self._initial_state is not None and not exported.takes_initial_state:
            raise Fault(
                INITIAL_STATE_NOT_HANDLED,
                "the query has an initial state, but the processor takes none: define handleInitialState",
            )
        self._processor.init(self._handle)
        return Plan(
            output=exported.output.columns(),
            columns=None if exported.input is None else exported.input.columns(),
            initial_state=None if self._initial_state is None else self._initial_state.columns(),
            key=None if exported.key is None else exported.key.columns(),
            prefetch=self._handle.end_init(),
        )

    def handle_initial_state(self, time: TimerValues) -> None:
        """The phase of the initial state."""
        if self._initial_state is not None:
            self._phase(INITIAL_STATE, self._initial_state, time)

    def handle_input_rows(self, time: TimerValues) -> None:
        """The phase of input rows."""
        self._phase(INPUT_ROWS, self._input, time)

    def handle_expired_timer(self, time: TimerValues) -> None:
        """The phase of timers."""
        self._phase(EXPIRED_TIMER, EXPIRIES, time)
        self._handle._timers.end_phase()

    def close(self) -> None:
        """The end of the batch."""
        self._processor.close()

    def _phase(self, phase: str, rows: StructType, time: TimerValues) -> None:
        loop = walk(phase, self._key, rows, self._exported.output)
        loop(self.session, getattr(self._processor, phase), time, self._handle._timers)
