"""Counts the visits of a user, and tells when the user has left: after half an hour without one."""

import tidemill
from tidemill import Row, StatefulProcessor

#: Without a visit for so long, a user has left.
QUIET_MS = 30 * 60 * 1000


class Counter(StatefulProcessor):
    def init(self, handle):
        self.handle = handle
        self.visits = handle.getValueState("visits", "value BIGINT")

    def handleInputRows(self, key, rows, timerValues):
        (user,) = key
        before = self.visits.get()
        visits = before.value if before else 0
        for visit in rows:
            tidemill.log.debug(f"{user} visits {visit.page}")
            visits += 1
        self.visits.update((visits,))

        for expiry_ms in list(self.handle.listTimers()):
            self.handle.deleteTimer(expiry_ms)
        self.handle.registerTimer(timerValues.getCurrentProcessingTimeInMs() + QUIET_MS)
        yield Row(user=user, visits=visits, here=True)

    def handleExpiredTimer(self, key, timerValues, expiredTimerInfo):
        (user,) = key
        before = self.visits.get()
        visits = before.value if before else 0
        self.visits.clear()
        yield Row(user=user, visits=visits, here=False)


# Of the input only these columns are read.
tidemill.export(
    Counter,
    key="user STRING NOT NULL",
    input="page STRING NOT NULL",
    output="user STRING NOT NULL, visits BIGINT NOT NULL, here BOOLEAN NOT NULL",
)
