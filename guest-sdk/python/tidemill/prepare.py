"""Makes, while a component is built, the code that each instance would otherwise make anew.

Generating the functions of a schema takes milliseconds in a component, and an instance lives for one batch. The schemas
of ``tidemill.export`` are known; those of state variables show when ``init`` runs, so it is rehearsed, without a host.
"""

from __future__ import annotations

import contextlib
from typing import Any

from .host import Query
from .instance import Instance
from .processor import Exported
from .walk import EXPIRED_TIMER, EXPIRIES, INITIAL_STATE, INPUT_ROWS, walk


def prepare(exported: Exported) -> None:
    """Makes the code of all schemas that are known before a query is."""
    if exported.key is not None:
        if exported.input is not None:
            walk(INPUT_ROWS, exported.key, exported.input, exported.output)
        if exported.initial_state is not None:
            walk(INITIAL_STATE, exported.key, exported.initial_state, exported.output)
        walk(EXPIRED_TIMER, exported.key, EXPIRIES, exported.output)
    # An `init` that needs a setting of the query fails here, however it fails; its code is then made when it has it.
    with contextlib.suppress(BaseException):
        Instance(_NoHost(), _no_query(exported), exported).init()


class _NoHost:
    """Numbers the variables that `init` makes, and does nothing else."""

    def __init__(self) -> None:
        self._variables = 0

    def __getattr__(self, name: str) -> Any:
        return self._next

    def _next(self, *arguments: Any) -> int:
        self._variables += 1
        return self._variables


def _no_query(exported: Exported) -> Query:
    return Query(
        query_id="",
        run_id="",
        batch_id=0,
        time_mode="ProcessingTime",
        output_mode="Append",
        key="" if exported.key is None else exported.key.columns(),
        input="" if exported.input is None else exported.input.columns(),
        initial_state=None if exported.initial_state is None else exported.initial_state.columns(),
        parameters={"tidemill.batch-time-ms": "0", "tidemill.seed": "0"},
    )
