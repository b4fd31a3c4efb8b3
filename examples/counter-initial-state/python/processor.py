"""Counts rows per key, and begins where an earlier system stopped."""

import tidemill
from tidemill import StatefulProcessor


class Counter(StatefulProcessor):
    def init(self, handle):
        self.count = handle.getValueState("count", "value BIGINT")

    def handleInitialState(self, key, initialState, timerValues):
        self.count.update((initialState["count"],))

    def handleInputRows(self, key, rows, timerValues):
        before = self.count.get()
        count = before.value if before else 0
        for row in rows:
            # An empty value is a sign of life, not a count.
            count += row.value != ""
        self.count.update((count,))
        yield key[0], count


tidemill.export(
    Counter,
    key="id STRING NOT NULL",
    input="value STRING NOT NULL",
    initialState="count BIGINT NOT NULL",
    output="id STRING NOT NULL, count BIGINT NOT NULL",
)
