"""Errors with a stable code: those of the SDK and the host, and those of authors."""

from __future__ import annotations


class Error(Exception):
    """An error that users of the processor can match on by its code.

    Raise it from a handler: the batch then fails with this code instead of ``USER_CODE``. The code is in
    SCREAMING_SNAKE_CASE, the message is for people.
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(code, message)
        self.code = code
        self.message = message

    def __str__(self) -> str:
        return f"{self.code}: {self.message}"


class Fault(Error):
    """A misuse that the SDK or the host found: a wrong type, state out of reach, an empty list.

    It is raised at the line that caused it. Uncaught, it fails the batch with its code.
    """


# The host's codes, for what the SDK finds before the host does. Those of Spark keep Spark's names.
INVALID_HANDLE_STATE = "STATEFUL_PROCESSOR_CANNOT_PERFORM_OPERATION_WITH_INVALID_HANDLE_STATE"
INVALID_TIME_MODE = "STATEFUL_PROCESSOR_CANNOT_PERFORM_OPERATION_WITH_INVALID_TIME_MODE"
INVALID_TTL = "STATEFUL_PROCESSOR_TTL_DURATION_MUST_BE_POSITIVE"
NULL_VALUE = "ILLEGAL_STATE_STORE_VALUE.NULL_VALUE"
EMPTY_LIST_VALUE = "ILLEGAL_STATE_STORE_VALUE.EMPTY_LIST_VALUE"
INVALID_ROW = "INVALID_ROW"
OUT_OF_RANGE = "NUMERIC_VALUE_OUT_OF_RANGE"
INVALID_ARGUMENT = "INVALID_ARGUMENT"
INVALID_SCHEMA = "INVALID_SCHEMA"
SCHEMA_MISMATCH = "SCHEMA_MISMATCH"
INITIAL_STATE_NOT_HANDLED = "INITIAL_STATE_NOT_HANDLED"
CONTRACT_BROKEN = "CONTRACT_BROKEN"
USER_CODE = "USER_CODE"
#: What the host calls it when a guest may have no more memory.
GUEST_MEMORY = "GUEST_MEMORY"
