"""The programs of the recorded scenarios (tests/conformance/README.md), as they were in PySpark, so that what they emit
can be held against what Spark emitted, letter by letter. The parameter `program` picks one.
"""

import tidemill
from tidemill import StatefulProcessor

from programs import PROGRAMS


class Conformance(StatefulProcessor):
    def init(self, handle):
        name = handle.parameters.get("program", "")
        if name not in PROGRAMS:
            raise tidemill.Error("NO_SUCH_PROGRAM", name)
        self.program = PROGRAMS[name]()
        self.program.init(handle)

    def handleInputRows(self, key, rows, timerValues):
        return self.program.handleInputRows(key, rows, timerValues)

    def handleExpiredTimer(self, key, timerValues, expiredTimerInfo):
        return self.program.handleExpiredTimer(key, timerValues, expiredTimerInfo)

    def handleInitialState(self, key, initialState, timerValues):
        self.program.handleInitialState(key, initialState, timerValues)

    def close(self):
        self.program.close()


tidemill.export(
    Conformance,
    key="key STRING",
    input="op STRING, a STRING, b BIGINT, ts TIMESTAMP",
    initialState="n BIGINT NOT NULL, timer BIGINT",
    output="key STRING, ev STRING NOT NULL, out STRING",
)
