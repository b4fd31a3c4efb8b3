"""Counts per key and nothing else, so that a benchmark measures the way to the processor and back."""

import tidemill
from tidemill import StatefulProcessor


class Counter(StatefulProcessor):
    def init(self, handle):
        self.count = handle.getValueState("count", "value BIGINT")

    def handleInputRows(self, key, rows, timerValues):
        before = self.count.get()
        count = before[0] if before else 0
        for row in rows:
            count += row.n
        self.count.update((count,))
        yield key[0], count


tidemill.export(
    Counter,
    key="key STRING NOT NULL",
    input="n BIGINT NOT NULL",
    output="key STRING NOT NULL, count BIGINT NOT NULL",
)
