"""What is made while a component is built."""

from __future__ import annotations

from typing import Any

import tidemill
from tidemill import StatefulProcessor, StatefulProcessorHandle
from tidemill.prepare import prepare
from tidemill.processor import exported
from tidemill.state.value import _class_of


class NeedsSetting(StatefulProcessor):
    def init(self, handle: StatefulProcessorHandle) -> None:
        self.rehearsed = handle.getValueState("rehearsed", "rehearsed_column BIGINT")
        self.limit = int(handle.parameters["limit"])

    def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> None:
        return None


def test_the_code_of_state_schemas_is_made_by_a_rehearsal_of_init_that_may_fail() -> None:
    tidemill.export(NeedsSetting, key="key STRING", input="n BIGINT", output="key STRING")
    made = _class_of.cache_info().misses
    prepare(exported[-1])
    assert _class_of.cache_info().misses == made + 1
    assert exported[-1].processor is NeedsSetting


class Leaves(StatefulProcessor):
    def init(self, handle: StatefulProcessorHandle) -> None:
        raise SystemExit(3)

    def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> None:
        return None


def test_an_init_that_leaves_the_program_does_not_stop_the_build() -> None:
    tidemill.export(Leaves, key="key STRING", input="n BIGINT", output="key STRING")
    prepare(exported[-1])
