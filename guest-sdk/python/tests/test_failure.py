"""What a user sees of an exception: its code, its words, the key's group and the author's lines."""

from __future__ import annotations

import linecache
import pathlib
import sys
import types
from collections.abc import Callable
from typing import Any

import pytest

import tidemill
from tidemill import Fault, StatefulProcessor, StatefulProcessorHandle
from tidemill.failure import Failure, failure_of, keep_sources
from tidemill.host import ApplyFault, Query
from tidemill.instance import Instance
from tidemill.processor import exported_of
from tidemill.testing import TestQuery
from tidemill.testing.memory import MemoryHost
from tidemill.testing.store import Store
from tidemill.timers import TimerValues


class Failing(StatefulProcessor):
    """Fails where a test says."""

    where = ""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self.handle = handle
        self.fail("init")

    def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Any:
        self.handle.registerTimer(0)
        self.fail("handleInputRows")
        return ()

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Any:
        self.fail("handleExpiredTimer")
        yield from ()

    def handleInitialState(self, key: Any, initialState: Any, timerValues: Any) -> None:
        self.fail("handleInitialState")

    def close(self) -> None:
        self.fail("close")

    def fail(self, where: str) -> None:
        if self.where == where:
            raise ValueError(f"no price in {where}")


tidemill.export(Failing, key="key STRING", input="n BIGINT", initialState="n BIGINT", output="key STRING")


def failure(run: Callable[[], Any], group: int | None = None) -> Failure:
    """The failure of what is run."""
    with pytest.raises(BaseException) as raised:
        run()
    return failure_of(raised.value, group)


@pytest.mark.parametrize(
    ("where", "has_group"),
    [("init", False), ("handleInputRows", True), ("handleExpiredTimer", True), ("handleInitialState", True), ("close", False)],
)
def test_an_exception_in_each_handler_has_its_words_its_group_and_its_line(
    monkeypatch: pytest.MonkeyPatch, where: str, has_group: bool
) -> None:
    monkeypatch.setattr(Failing, "where", where)
    host = MemoryHost(Store(), "ProcessingTime", 0, 8, 8, lambda level, message: None)
    query = Query("", "", 0, "ProcessingTime", "Append", "key STRING", "n BIGINT", "n BIGINT", {})
    instance = Instance(host, query, exported_of(Failing))
    packed = (bytes.fromhex("0000000000000000100000000100000061") + bytes(7), [bytes(16)])

    def batch() -> None:
        instance.init()
        for phase in ("handle_initial_state", "handle_input_rows", "handle_expired_timer"):
            host.open(phase, [packed])
            getattr(instance, phase)(TimerValues(0, 0))
        instance.close()

    with pytest.raises(ValueError) as raised:
        batch()
    failed = failure_of(raised.value, instance.session.group)
    assert failed.code == "USER_CODE"
    assert failed.message == f"ValueError: no price in {where}"
    assert (failed.group is not None) == has_group
    assert f"in {where}" in failed.stack and "self.fail(" in failed.stack


def test_an_error_of_the_author_has_its_own_code() -> None:
    def raise_it() -> None:
        raise tidemill.Error("OVERDRAWN", "by 5")

    assert failure(raise_it).code == "OVERDRAWN"
    assert failure(raise_it).message == "by 5"


def test_a_fault_of_apply_names_the_group_of_its_op() -> None:
    fault = ApplyFault(3, "INVALID_ROW", "no row")
    fault.group = 7
    assert failure_of(fault, 9).group == 7


def test_leaving_the_program_is_a_failure_like_any_other() -> None:
    assert failure(lambda: sys.exit(3)).message == "SystemExit: 3"


def test_text_that_no_host_takes_is_made_to_fit() -> None:
    def raise_it() -> None:
        raise ValueError("half \ud800")

    assert failure(raise_it).message == "ValueError: half \\ud800"


def test_an_exception_that_cannot_be_printed_is_told_by_its_type() -> None:
    class Mute(Exception):
        def __str__(self) -> str:
            raise ValueError

    def raise_it() -> None:
        raise Mute

    assert failure(raise_it).message == "Mute"


def test_the_stack_shows_the_line_of_the_yield_and_nothing_of_the_sdk() -> None:
    class Emits(StatefulProcessor):
        def init(self, handle: StatefulProcessorHandle) -> None: ...

        def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Any:
            yield "a", "three"

    tidemill.export(Emits, key="key STRING", input="n BIGINT", output="key STRING, n BIGINT")
    failed = failure(TestQuery(Emits).input("a", [(1,)]).run_batch)
    assert failed.code == "INVALID_ROW"
    assert 'yield "a", "three"' in failed.stack
    assert "walk.py" not in failed.stack and "<tidemill" not in failed.stack and "During handling" not in failed.stack


def test_a_generator_that_catches_the_fault_of_its_yield_fails_all_the_same() -> None:
    class Catches(StatefulProcessor):
        def init(self, handle: StatefulProcessorHandle) -> None: ...

        def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Any:
            try:
                yield ("three",)
            except Fault:
                yield (3,)

    tidemill.export(Catches, key="key STRING", input="n BIGINT", output="n BIGINT")
    with pytest.raises(Fault, match="BIGINT takes int"):
        TestQuery(Catches).input("a", [(1,)]).run_batch()


def test_the_source_of_an_author_s_module_is_kept(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "authored.py"
    file.write_text("price = 1 / 1\n")
    module = types.ModuleType("authored")
    module.__file__ = str(file)
    monkeypatch.setitem(sys.modules, "authored", module)
    keep_sources()
    file.unlink()
    linecache.checkcache(str(file))
    assert linecache.getline(str(file), 1) == "price = 1 / 1\n"


def test_a_processor_that_ran_out_of_memory_is_told_of_the_limit() -> None:
    failed = failure_of(MemoryError(), 4)
    assert failed.code == "GUEST_MEMORY"
    assert "limits.sandbox.memory_bytes" in failed.message
