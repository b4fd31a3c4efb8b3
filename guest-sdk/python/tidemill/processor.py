"""What authors write: a processor, and the line that makes it the one of its component."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from .errors import INVALID_ARGUMENT, Fault
from .handle import StatefulProcessorHandle
from .row import Row
from .timers import ExpiredTimerInfo, TimerValues
from .types import Schema, StructType, schema_of


class StatefulProcessor(ABC):
    """Processes the rows of a stream key by key, with state and timers per key.

    An instance lives for one batch; nothing is kept from batch to batch but state. Handlers answer the rows that they
    emit, most simply by ``yield``: tuples, Rows or dicts of the output's columns.
    """

    @abstractmethod
    def init(self, handle: StatefulProcessorHandle) -> None:
        """Makes the state variables. Called first, in every batch; it must not depend on the batch."""

    @abstractmethod
    def handleInputRows(
        self, key: tuple[Any, ...], rows: Iterator[Row], timerValues: TimerValues
    ) -> Iterable[Any] | None:
        """Called with the input rows of a key, all that the batch has of it."""

    def handleExpiredTimer(
        self, key: tuple[Any, ...], timerValues: TimerValues, expiredTimerInfo: ExpiredTimerInfo
    ) -> Iterable[Any] | None:
        """Called when a timer of a key fires, after the input rows of all keys."""
        return None

    def handleInitialState(self, key: tuple[Any, ...], initialState: Row, timerValues: TimerValues) -> None:
        """Called with each row of the initial state, before any input was read. It emits nothing."""

    def close(self) -> None:
        """Called last in every batch, before it is committed."""


@dataclass(frozen=True)
class Exported:
    """A processor with its schemas; those that are None are the query's own."""

    processor: type[StatefulProcessor]
    output: StructType
    input: StructType | None
    key: StructType | None
    initial_state: StructType | None

    @property
    def takes_initial_state(self) -> bool:
        """Whether the processor handles an initial state."""
        return self.processor.handleInitialState is not StatefulProcessor.handleInitialState


#: What the modules that were imported have exported, in order.
exported: list[Exported] = []


def export(
    processor: type[StatefulProcessor],
    *,
    output: Schema,
    input: Schema | None = None,
    key: Schema | None = None,
    initialState: Schema | None = None,
) -> None:
    """Makes a processor the one of this component; stands on the last line of the author's module.

    ``output`` are the columns of emitted rows. ``input`` are the columns that rows shall carry, in this order and with
    these types; others are not even read. Without it rows carry all columns of the source. ``key`` names the columns of
    the grouping key. In both, a NULL in a column that is NOT NULL makes its row a bad row, which the query deals with
    before the processor sees it. ``initialState`` are the columns wanted of the initial state. Schemas that are given
    here cost nothing at run time: their code is made when the component is built.
    """
    if not (isinstance(processor, type) and hasattr(processor, "init") and hasattr(processor, "handleInputRows")):
        raise Fault(INVALID_ARGUMENT, f"`export` takes a class derived from StatefulProcessor, not {processor!r}")
    exported.append(
        Exported(
            processor,
            schema_of(output),
            None if input is None else schema_of(input),
            None if key is None else schema_of(key),
            None if initialState is None else schema_of(initialState),
        )
    )


def exported_of(processor: type[StatefulProcessor]) -> Exported:
    """What a processor was exported with."""
    for candidate in reversed(exported):
        if candidate.processor is processor:
            return candidate
    raise Fault(INVALID_ARGUMENT, f"{processor.__name__} is not exported: end its module with tidemill.export({processor.__name__}, ...)")
