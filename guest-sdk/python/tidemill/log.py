"""Log lines of a processor, at five levels; the host bounds them and shows them with the query.

Python's ``logging`` goes the same way, and what is printed arrives as raw output.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from .failure import text_of

TRACE, DEBUG, INFO, WARN, ERROR = range(5)

#: Where log lines go: to the host of the component, or into the log of a test.
_sink: list[Callable[[int, str], None]] = []


def trace(message: object) -> None:
    """Logs what is finer than debugging."""
    _write(TRACE, message)


def debug(message: object) -> None:
    """Logs for debugging."""
    _write(DEBUG, message)


def info(message: object) -> None:
    """Logs what is worth knowing."""
    _write(INFO, message)


def warn(message: object) -> None:
    """Logs what is odd."""
    _write(WARN, message)


def error(message: object) -> None:
    """Logs what went wrong."""
    _write(ERROR, message)


class Handler(logging.Handler):
    """Sends the records of Python's ``logging`` to the host."""

    def emit(self, record: logging.LogRecord) -> None:
        try:
            _write(_level_of(record.levelno), self.format(record))
        except Exception:
            self.handleError(record)


def send_to(sink: Callable[[int, str], None]) -> None:
    """Sets where log lines go."""
    _sink[:] = [sink]


def install() -> None:
    """Sends Python's ``logging`` to the host, of all levels: the host knows which are off."""
    root = logging.getLogger()
    root.addHandler(Handler())
    root.setLevel(1)


def _level_of(levelno: int) -> int:
    return TRACE if levelno < logging.DEBUG else min(levelno // 10, ERROR)


def _write(level: int, message: object) -> None:
    for sink in _sink:
        sink(level, text_of(message))
