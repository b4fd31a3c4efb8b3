"""Stateful stream processors in Python: PySpark's ``StatefulProcessor``, row by row, as a WebAssembly component."""

from . import log
from .errors import Error, Fault
from .handle import QueryInfo, StatefulProcessorHandle
from .instants import millis_of, timestamp_of
from .processor import StatefulProcessor, export
from .row import Row
from .state import ListState, MapState, ValueState
from .timers import ExpiredTimerInfo, TimerValues

__all__ = [
    "Error",
    "ExpiredTimerInfo",
    "Fault",
    "ListState",
    "MapState",
    "QueryInfo",
    "Row",
    "StatefulProcessor",
    "StatefulProcessorHandle",
    "TimerValues",
    "ValueState",
    "export",
    "log",
    "millis_of",
    "timestamp_of",
]
