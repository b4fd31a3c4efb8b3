"""Counts rows per key, and keeps what it saw: a value, a list and a map per grouping key."""

import tidemill
from tidemill import Row, StatefulProcessor


class Counter(StatefulProcessor):
    def init(self, handle):
        self.count = handle.getValueState("count", "value BIGINT")
        self.seen = handle.getListState("seen", "value BIGINT")
        self.times = handle.getMapState("times", "value BIGINT", "value BIGINT")

    def handleInputRows(self, key, rows, timerValues):
        before = self.count.get()
        count = before.value if before else 0
        for row in rows:
            count += 1
            self.seen.appendValue((row.n,))
            times = self.times.getValue((row.n,))
            self.times.updateValue((row.n,), (times.value + 1 if times else 1,))
        self.count.update((count,))
        yield Row(
            key=key[0],
            count=count,
            listed=sum(1 for _ in self.seen.get()),
            distinct=sum(1 for _ in self.times.keys()),
        )


tidemill.export(
    Counter,
    key="key STRING NOT NULL",
    input="n BIGINT NOT NULL",
    output="key STRING NOT NULL, count BIGINT NOT NULL, listed BIGINT NOT NULL, distinct BIGINT NOT NULL",
)
