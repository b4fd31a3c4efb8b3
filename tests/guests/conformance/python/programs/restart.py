"""A count that lives through restarts, and timers beside it."""

from tidemill import StatefulProcessor

from .printed import printed
from .timers import count


class Restart(StatefulProcessor):
    def init(self, handle):
        self.handle = handle
        self.n = handle.getValueState("n", "n BIGINT")

    def handleInputRows(self, key, rows, timerValues):
        xs = [row.b or 0 for row in rows]
        n = count(self.n) + len(xs)
        self.n.update((n,))
        for x in xs:
            # A large number is a time.
            if x > 1000:
                self.handle.registerTimer(x)
        now, wm = timerValues.getCurrentProcessingTimeInMs(), timerValues.getCurrentWatermarkInMs()
        timers = None if self.handle.timeMode == "None" else list(self.handle.listTimers())
        yield key[0], "ROWS", printed((n, xs, "now", now, "wm", wm, "timers", timers))

    def handleExpiredTimer(self, key, timerValues, expiredTimerInfo):
        now, wm = timerValues.getCurrentProcessingTimeInMs(), timerValues.getCurrentWatermarkInMs()
        at = expiredTimerInfo.getExpiryTimeInMs()
        yield key[0], "TIMER", printed((at, "now", now, "wm", wm, self.n.get()))
