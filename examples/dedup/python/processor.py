"""Lets each event through once, and forgets it after an hour."""

import tidemill
from tidemill import StatefulProcessor

REMEMBERED_MS = 60 * 60 * 1000


class Dedup(StatefulProcessor):
    def init(self, handle):
        self.seen = handle.getValueState("seen", "value BOOLEAN", ttlDurationMs=REMEMBERED_MS)

    def handleInputRows(self, key, rows, timerValues):
        # Repeats are not even read, and do not prolong the hour.
        if not self.seen.exists():
            self.seen.update((True,))
            yield next(rows)


EVENT = "id STRING NOT NULL, body STRING"

tidemill.export(Dedup, key="id STRING NOT NULL", input=EVENT, output=EVENT)
