"""A processor from ``init`` to ``close``: state, timers, and the borders of chunks. The checklist of ``wit/README.md``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

import tidemill
from tidemill import Fault, Row, StatefulProcessor, StatefulProcessorHandle, TimerValues
from tidemill.testing import TestQuery

INVALID_HANDLE_STATE = "STATEFUL_PROCESSOR_CANNOT_PERFORM_OPERATION_WITH_INVALID_HANDLE_STATE"


class Scripted(StatefulProcessor):
    """Runs what a test gives it."""

    on_init: Callable[[Any], None] = staticmethod(lambda it: None)
    on_rows: Callable[..., Any] = staticmethod(lambda it, key, rows: None)
    on_timer: Callable[..., Any] = staticmethod(lambda it, key, expiry_ms: None)
    on_close: Callable[[Any], None] = staticmethod(lambda it: None)

    def init(self, handle: StatefulProcessorHandle) -> None:
        self.handle = handle
        self.value = handle.getValueState("value", "n BIGINT, text STRING")
        self.list = handle.getListState("list", "n BIGINT")
        self.map = handle.getMapState("map", "k STRING", "n BIGINT")
        type(self).on_init(self)

    def handleInputRows(self, key: tuple[Any, ...], rows: Iterator[Row], timerValues: TimerValues) -> Any:
        return type(self).on_rows(self, key, rows)

    def handleExpiredTimer(self, key: tuple[Any, ...], timerValues: TimerValues, expiredTimerInfo: Any) -> Any:
        return type(self).on_timer(self, key, expiredTimerInfo.getExpiryTimeInMs())

    def close(self) -> None:
        type(self).on_close(self)


def scripted(**steps: Callable[..., Any]) -> type[StatefulProcessor]:
    """A processor with these steps, over rows `n BIGINT` by key `key STRING`, that emits `key STRING, n BIGINT`."""
    processor = type("Scripted", (Scripted,), {f"on_{name}": staticmethod(step) for name, step in steps.items()})
    tidemill.export(processor, key="key STRING", input="n BIGINT", output="key STRING, n BIGINT")
    return processor


def numbers(*values: int) -> list[tuple[int]]:
    return [(value,) for value in values]


# --- chunks


def test_a_group_whose_rows_span_chunks_arrives_as_one_sequence() -> None:
    def count(it: Any, key: Any, rows: Any) -> Any:
        yield key[0], sum(row.n for row in rows)

    query = TestQuery(scripted(rows=count)).small_chunks(groups=2, rows=3)
    query.input("a", numbers(*range(20))).input("b", numbers(5)).input("c", numbers(6))
    assert query.run_batch() == [("a", 190), ("b", 5), ("c", 6)]


def test_a_handler_that_reads_only_its_first_row_does_not_disturb_the_next_group() -> None:
    def first(it: Any, key: Any, rows: Any) -> Any:
        yield key[0], next(rows).n

    query = TestQuery(scripted(rows=first)).small_chunks(groups=2, rows=3)
    query.input("a", numbers(*range(20))).input("b", numbers(5, 6))
    assert query.run_batch() == [("a", 0), ("b", 5)]


def test_a_handler_that_reads_half_of_its_rows_does_not_disturb_the_next_group() -> None:
    def half(it: Any, key: Any, rows: Any) -> Any:
        yield key[0], sum(row.n for row, _ in zip(rows, range(10)))

    query = TestQuery(scripted(rows=half)).small_chunks(groups=2, rows=3)
    query.input("a", numbers(*[1] * 20)).input("b", numbers(5, 6))
    assert query.run_batch() == [("a", 10), ("b", 11)]


def test_values_are_known_across_the_chunks_of_a_group() -> None:
    def add(it: Any, key: Any, rows: Any) -> Any:
        for row in rows:
            before = it.value.get()
            it.value.update(((before.n if before else 0) + row.n, None))
        yield key[0], it.value.get().n

    query = TestQuery(scripted(rows=add)).small_chunks(groups=2, rows=2)
    query.input("a", numbers(*[1] * 9)).input("b", numbers(7))
    assert query.run_batch() == [("a", 9), ("b", 7)]
    assert query.input("a", numbers(1)).run_batch() == [("a", 10)]


# --- state


def test_get_sees_update_and_clear() -> None:
    seen: list[Any] = []

    def rows(it: Any, key: Any, rows: Any) -> None:
        seen.append((it.value.get(), it.value.exists()))
        it.value.update((1, "one"))
        seen.append((it.value.get(), it.value.exists()))
        it.value.clear()
        seen.append((it.value.get(), it.value.exists()))

    TestQuery(scripted(rows=rows)).input("a", numbers(1)).run_batch()
    assert seen == [(None, False), (Row(n=1, text="one"), True), (None, False)]


def test_get_sees_update_after_more_writes_than_the_buffer_holds() -> None:
    def rows(it: Any, key: Any, rows: Any) -> Any:
        it.value.update((1, "x" * 100_000))
        for n in range(5_000):
            it.list.appendValue((n,))
        yield key[0], len(it.value.get().text)

    assert TestQuery(scripted(rows=rows)).input("a", numbers(1)).run_batch() == [("a", 100_000)]


def test_a_map_read_sees_pending_put_remove_and_clear() -> None:
    seen: list[Any] = []

    def look(it: Any) -> None:
        seen.append((it.map.getValue(("k",)), it.map.containsKey(("k",)), it.map.exists(), [*it.map.keys()]))

    def rows(it: Any, key: Any, rows: Any) -> None:
        it.map.updateValue(("k",), (1,))
        assert it.map.getValue(("k",)) == (1,)
        look(it)
        it.map.removeKey(("k",))
        assert it.map.getValue(("k",)) is None
        look(it)
        it.map.updateValue(("k",), (2,))
        it.map.updateValue(("l",), (3,))
        assert [*it.map.iterator()] == [(("k",), (2,)), (("l",), (3,))]
        assert [*it.map.values()] == [(2,), (3,)]
        it.map.clear()
        assert it.map.getValue(("l",)) is None
        look(it)

    TestQuery(scripted(rows=rows)).input("a", numbers(1)).run_batch()
    assert seen == [((1,), True, True, [("k",)]), (None, False, False, []), (None, False, False, [])]


def test_what_is_pending_for_one_key_is_not_seen_by_another() -> None:
    def rows(it: Any, key: Any, rows: Any) -> Any:
        yield key[0], -1 if it.map.getValue(("k",)) is None else 1
        it.map.updateValue(("k",), (1,))
        it.value.update((1, None))

    query = TestQuery(scripted(rows=rows)).small_chunks(groups=1, rows=9)
    for key in "abc":
        query.input(key, numbers(1))
    assert query.run_batch() == [("a", -1), ("b", -1), ("c", -1)]


def test_a_list_put_larger_than_the_buffer_reads_back_whole_and_in_order() -> None:
    def rows(it: Any, key: Any, rows: Any) -> Any:
        it.list.appendValue((-1,))
        it.list.put(numbers(*range(10_000)))
        yield key[0], sum(1 for n, row in enumerate(it.list.get()) if row.n == n)

    query = TestQuery(scripted(rows=rows))
    assert query.input("a", numbers(1)).run_batch() == [("a", 10_000)]
    assert len(query.list_of("list", "a")) == 10_000


def test_lists_and_maps_read_over_many_pages() -> None:
    def rows(it: Any, key: Any, rows: Any) -> Any:
        it.list.appendList(numbers(1, 2, 3, 4, 5))
        for k in "abcde":
            it.map.updateValue((k,), (1,))
        yield key[0], sum(row.n for row in it.list.get())
        yield "".join(k for (k,), _ in it.map.iterator()), sum(row.n for row in it.map.values())

    query = TestQuery(scripted(rows=rows)).small_chunks(groups=1, rows=2).input("a", numbers(1))
    assert query.run_batch() == [("a", 15), ("abcde", 5)]


def test_a_whole_chunk_is_written_by_one_apply_and_read_without_asking() -> None:
    hosts: list[Any] = []

    def rows(it: Any, key: Any, rows: Any) -> Any:
        hosts.append(it.handle._session.host)
        before = it.value.get()
        it.value.update(((before.n if before else 0) + 1, None))
        yield key[0], it.value.get().n

    query = TestQuery(scripted(rows=rows))
    for key in range(100):
        query.input(str(key), numbers(1))
    assert len(query.run_batch()) == 100
    assert (hosts[0].applied, hosts[0].asked) == (1, 0)


# --- timers


def test_a_timer_that_a_handler_deletes_does_not_fire() -> None:
    def rows(it: Any, key: Any, rows: Any) -> None:
        for row in rows:
            it.handle.registerTimer(row.n)

    def timer(it: Any, key: Any, expiry_ms: int) -> Any:
        if expiry_ms == 1:
            it.handle.deleteTimer(2)
        yield key[0], expiry_ms

    query = TestQuery(scripted(rows=rows, timer=timer), time_mode="ProcessingTime").set_time_ms(5)
    query.input("a", numbers(3, 2, 1, 9)).input("b", numbers(2))
    assert query.run_batch() == [("a", 1), ("a", 3), ("b", 2)]
    assert query.timers_of("a") == [9]


def test_a_timer_that_is_registered_again_by_its_handler_stays() -> None:
    def rows(it: Any, key: Any, rows: Any) -> None:
        it.handle.registerTimer(next(rows).n)

    def timer(it: Any, key: Any, expiry_ms: int) -> Any:
        it.handle.registerTimer(expiry_ms)
        yield key[0], expiry_ms

    query = TestQuery(scripted(rows=rows, timer=timer), time_mode="ProcessingTime").set_time_ms(5)
    assert query.input("a", numbers(1)).run_batch() == [("a", 1)]
    assert query.timers_of("a") == [1]


def test_the_timer_that_fires_is_listed_unless_its_handler_deletes_it() -> None:
    seen: list[list[int]] = []

    def rows(it: Any, key: Any, rows: Any) -> None:
        for row in rows:
            it.handle.registerTimer(row.n)

    def timer(it: Any, key: Any, expiry_ms: int) -> None:
        seen.append([*it.handle.listTimers()])
        it.handle.deleteTimer(expiry_ms)
        seen.append([*it.handle.listTimers()])

    query = TestQuery(scripted(rows=rows, timer=timer), time_mode="EventTime").small_chunks(1, 2).set_watermark_ms(5)
    query.input("a", numbers(4, 7, 8)).run_batch()
    assert seen == [[4, 7, 8], [7, 8]]


def test_timers_are_refused_without_a_time_mode() -> None:
    def rows(it: Any, key: Any, rows: Any) -> None:
        it.handle.registerTimer(1)

    with pytest.raises(Fault, match="INVALID_TIME_MODE"):
        TestQuery(scripted(rows=rows)).input("a", numbers(1)).run_batch()


# --- errors


@pytest.mark.parametrize("step", ["init", "close"])
@pytest.mark.parametrize("read", ["value.get", "value.exists", "list.get", "map.keys", "handle.listTimers"])
def test_state_is_out_of_reach_where_there_is_no_key(step: str, read: str) -> None:
    def reach(it: Any) -> None:
        state, method = read.split(".")
        getattr(getattr(it, state), method)()

    with pytest.raises(Fault) as fault:
        TestQuery(scripted(**{step: reach}), time_mode="ProcessingTime").run_batch()
    assert fault.value.code == INVALID_HANDLE_STATE


@pytest.mark.parametrize("step", ["init", "close"])
def test_writing_is_refused_where_there_is_no_key(step: str) -> None:
    for write in (
        lambda it: it.value.update((1, None)),
        lambda it: it.value.clear(),
        lambda it: it.list.appendValue((1,)),
        lambda it: it.map.updateValue(("k",), (1,)),
    ):
        with pytest.raises(Fault) as fault:
            TestQuery(scripted(**{step: write})).run_batch()
        assert fault.value.code == INVALID_HANDLE_STATE


def test_an_exception_of_a_handler_fails_the_batch_without_effect() -> None:
    def rows(it: Any, key: Any, rows: Any) -> None:
        it.value.update((1, None))
        if key == ("b",):
            raise KeyError("no price")

    query = TestQuery(scripted(rows=rows)).input("a", numbers(1)).input("b", numbers(1))
    with pytest.raises(KeyError, match="no price"):
        query.run_batch()
    assert query.value_of("value", "a") is None


@pytest.mark.parametrize(
    ("write", "code", "words"),
    [
        (lambda it: it.value.update(("1", None)), "INVALID_ROW", "column `n`: BIGINT takes int, not '1' (str)"),
        (lambda it: it.value.update((1 << 63, None)), "NUMERIC_VALUE_OUT_OF_RANGE", "does not fit BIGINT"),
        (lambda it: it.value.update((1, 2)), "INVALID_ROW", "column `text`: STRING takes str"),
        (lambda it: it.value.update((1, "\ud800")), "INVALID_ROW", "surrogate"),
        (lambda it: it.value.update((1,)), "INVALID_ROW", "has 1 values, its schema has 2 columns"),
        (lambda it: it.value.update({"n": 1}), "INVALID_ROW", "column `text` is missing"),
        (lambda it: it.value.update(Row(n=1, txt="")), "INVALID_ROW", "column `text` is missing"),
        (lambda it: it.value.update(1), "INVALID_ROW", "give a tuple, a Row or a dict"),
        (lambda it: it.value.update(None), "ILLEGAL_STATE_STORE_VALUE.NULL_VALUE", "None is no row"),
        (lambda it: it.list.put([]), "ILLEGAL_STATE_STORE_VALUE.EMPTY_LIST_VALUE", "no elements"),
        (lambda it: it.list.appendList([]), "ILLEGAL_STATE_STORE_VALUE.EMPTY_LIST_VALUE", "no elements"),
        (lambda it: it.map.updateValue((None,), (1,)), "ILLEGAL_STATE_STORE_VALUE.NULL_VALUE", "key"),
        (lambda it: it.handle.getValueState("late", "n INT"), INVALID_HANDLE_STATE, "works in init only"),
        (lambda it: it.handle.deleteIfExists("list"), INVALID_HANDLE_STATE, "works in init only"),
    ],
)
def test_misuse_is_raised_at_the_author_s_line(write: Callable[[Any], None], code: str, words: str) -> None:
    with pytest.raises(Fault) as fault:
        TestQuery(scripted(rows=lambda it, key, rows: write(it))).input("a", numbers(1)).run_batch()
    assert fault.value.code == code
    assert words in fault.value.message


@pytest.mark.parametrize(
    ("emitted", "words"),
    [
        ([("a", "1")], "column `n`: BIGINT takes int"),
        ([{"key": "a"}], "column `n` is missing"),
        ([Row(key="a", n=1, m=2)], "no column `m`"),
        (("a", 1), "'a' (str) is no row"),
        (7, "no iterable of rows"),
    ],
)
def test_what_is_no_row_of_the_output_is_refused(emitted: Any, words: str) -> None:
    with pytest.raises(Fault) as fault:
        TestQuery(scripted(rows=lambda it, key, rows: emitted)).input("a", numbers(1)).run_batch()
    assert words in fault.value.message


def test_a_type_error_of_a_generator_is_its_own() -> None:
    def rows(it: Any, key: Any, rows: Any) -> Any:
        yield key[0], 1
        yield key + 1

    with pytest.raises(TypeError, match="can only concatenate tuple"):
        TestQuery(scripted(rows=rows)).input("a", numbers(1)).run_batch()


@pytest.mark.parametrize("row", [("a", 1), ["a", 1], {"n": 1, "key": "a"}, Row(n=1, key="a"), Row("a", 1)])
def test_rows_are_emitted_as_tuples_lists_dicts_and_rows(row: Any) -> None:
    query = TestQuery(scripted(rows=lambda it, key, rows: [row])).input("a", numbers(1))
    assert query.run_batch() == [Row(key="a", n=1)]
