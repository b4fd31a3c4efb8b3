"""The exports of a component, and its host: the border to the bindings that componentize-py makes.

Works only inside of a build. A value of a wrong type that crosses the border is a trap that nothing catches, so all
that crosses was checked before; and every exception becomes a failure here. componentize-py makes a new object for
each call of an export, so the instance lives in a variable of this module.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

from componentize_py_types import Err
from wit_world.exports import handler as contract
from wit_world.imports import effects, input, logging, state, timers, types

from . import log, stdlib
from .errors import CONTRACT_BROKEN, INVALID_ARGUMENT, Fault
from .failure import Failure, failure_of, keep_sources
from .host import ApplyFault, Plan, Query
from .instance import Instance
from .prepare import prepare
from .processor import Exported, exported
from .timers import TimerValues

_PARTS = [state.Part.KEYS, state.Part.VALUES, state.Part.ENTRIES]
_LEVELS = [logging.Level.TRACE, logging.Level.DEBUG, logging.Level.INFO, logging.Level.WARN, logging.Level.ERROR]
_TIME_MODES = {
    types.TimeMode.NONE: "None",
    types.TimeMode.PROCESSING_TIME: "ProcessingTime",
    types.TimeMode.EVENT_TIME: "EventTime",
}
_OUTPUT_MODES = {types.OutputMode.APPEND: "Append", types.OutputMode.UPDATE: "Update"}


def _asking(function: Callable[..., Any]) -> Callable[..., Any]:
    """An import whose fault is raised as an ordinary exception."""

    def ask(self: object, *arguments: Any) -> Any:
        try:
            return function(*arguments)
        except Err as error:
            raise Fault(error.value.code, error.value.message) from None

    return ask


def _paging(function: Callable[..., state.Page]) -> Callable[..., Any]:
    ask = _asking(function)

    def page(self: object, *arguments: Any) -> tuple[bytes, int | None]:
        answer = ask(self, *arguments)
        return answer.rows, answer.rest

    return page


def _listing(function: Callable[..., timers.TimerPage]) -> Callable[..., Any]:
    ask = _asking(function)

    def page(self: object, *arguments: Any) -> tuple[list[int], int | None]:
        answer = ask(self, *arguments)
        return answer.expiries_ms, answer.rest

    return page


class ComponentHost:
    """The imports of the component."""

    next_chunk = staticmethod(input.next)
    get_value_state = _asking(state.get_value_state)
    get_list_state = _asking(state.get_list_state)
    get_map_state = _asking(state.get_map_state)
    delete_if_exists = _asking(state.delete_if_exists)
    exists = _asking(state.exists)
    get_value = _asking(state.get_value)
    get_map_value = _asking(state.get_map_value)
    contains_key = _asking(state.contains_key)
    get_list = _paging(state.get_list)
    next_page = _paging(state.next_page)
    list_timers = _listing(timers.list_timers)
    next_timers = _listing(timers.next_timers)

    def get_map(self, variable: int, group: int, part: int) -> Any:
        return _get_map(self, variable, group, _PARTS[part])

    def apply(self, ops: bytes) -> None:
        try:
            effects.apply(ops)
        except Err as error:
            raise ApplyFault(error.value.op, error.value.code, error.value.message) from None

    def log(self, level: int, message: str) -> None:
        logging.log(_LEVELS[level], message)


_get_map = _paging(state.get_map)

#: The instance, from `init` on.
_instance: list[Instance] = []


class Handler:
    """The exports of the component."""

    def init(self, query: contract.Query) -> contract.Plan:
        def run() -> contract.Plan:
            instance = Instance(ComponentHost(), _query(query), _the_exported())
            _instance[:] = [instance]
            return _plan(instance.init())

        return _failing(run)  # type: ignore[no-any-return]

    def handle_initial_state(self, time: types.TimerValues) -> None:
        _failing(lambda: _in_hand().handle_initial_state(_time(time)))

    def handle_input_rows(self, time: types.TimerValues) -> None:
        _failing(lambda: _in_hand().handle_input_rows(_time(time)))

    def handle_expired_timer(self, time: types.TimerValues) -> None:
        _failing(lambda: _in_hand().handle_expired_timer(_time(time)))

    def close(self) -> None:
        _failing(lambda: _in_hand().close())


def _failing(run: Callable[[], Any]) -> Any:
    """Runs a call of the host; whatever it raises becomes a failure."""
    try:
        return run()
    # Also SystemExit and what else is no Exception: past this line it would be a trap without a message.
    except BaseException as error:
        failure = failure_of(error, _instance[0].session.group if _instance else None)
    raise Err(_failure(failure))


def _in_hand() -> Instance:
    if not _instance:
        raise Fault(CONTRACT_BROKEN, "the host called another export before init")
    return _instance[0]


def _the_exported() -> Exported:
    if len(exported) != 1:
        raise Fault(INVALID_ARGUMENT, f"a component exports one processor, and tidemill.export was called {len(exported)} times: call it once, on the last line of the module")
    return exported[0]


def _query(query: contract.Query) -> Query:
    return Query(
        query_id=query.query_id,
        run_id=query.run_id,
        batch_id=query.batch_id,
        time_mode=_TIME_MODES[query.time_mode],
        output_mode=_OUTPUT_MODES[query.output_mode],
        key=query.key,
        input=query.input,
        initial_state=query.initial_state,
        parameters=dict(query.parameters),
    )


def _plan(plan: Plan) -> contract.Plan:
    return contract.Plan(plan.output, plan.columns, plan.initial_state, plan.key, plan.prefetch)


def _time(time: types.TimerValues) -> TimerValues:
    return TimerValues(time.processing_time_ms, time.watermark_ms)


def _failure(failure: Failure) -> types.Failure:
    return types.Failure(failure.group, failure.code, failure.message, failure.stack)


stdlib.load()
keep_sources()
for _each in exported:
    prepare(_each)
log.send_to(lambda level, message: logging.log(_LEVELS[level], message))
log.install()
# What is here now stays as long as the component: the collector need not look at it again. Looking would also write to
# its pages, which all instances share until then.
gc.collect()
gc.freeze()
