"""State that a query begins with."""

from tidemill import StatefulProcessor

from .printed import printed
from .timers import count


class WithInitialState(StatefulProcessor):
    def init(self, handle):
        self.handle = handle
        self.n = handle.getValueState("n", "n BIGINT")
        # The clock of the initial rows, and whether there was something before each.
        self.seen = handle.getValueState("seen", "seen STRING")

    def handleInitialState(self, key, initialState, timerValues):
        now, wm = timerValues.getCurrentProcessingTimeInMs(), timerValues.getCurrentWatermarkInMs()
        self.seen.update((f"now {now} wm {wm} exists {self.n.exists()}",))
        self.n.update((count(self.n) + initialState.n,))
        if initialState.timer is not None:
            self.handle.registerTimer(initialState.timer)

    def handleInputRows(self, key, rows, timerValues):
        rows = list(rows)
        self.n.update((count(self.n) + len(rows),))
        yield key[0], "ROWS", printed(self.n.get())
        if any(row.op == "seen" for row in rows):
            yield key[0], "SEEN", printed(self.seen.get().seen)

    def handleExpiredTimer(self, key, timerValues, expiredTimerInfo):
        yield key[0], "TIMER", printed((expiredTimerInfo.getExpiryTimeInMs(), self.n.get()))
