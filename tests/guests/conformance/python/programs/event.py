"""Timers of event time."""

from tidemill import StatefulProcessor, millis_of

from .printed import printed
from .timers import count


class EventTime(StatefulProcessor):
    def init(self, handle):
        self.handle = handle
        self.cnt = handle.getValueState("cnt", "n BIGINT")
        # What to do when the timer of that time fires.
        self.todo = handle.getMapState("todo", "t BIGINT", "what STRING")

    def handleInputRows(self, key, rows, timerValues):
        wm = timerValues.getCurrentWatermarkInMs()
        for row in rows:
            self.cnt.update((count(self.cnt) + 1,))
            out = self.one(row.op or "", row.b or 0, wm)
            ts = row.ts and millis_of(row.ts)
            yield key[0], "ROW", printed((ts, row.op, row.b, out))
        yield key[0], "rows-done", printed(("wm", wm, "now", timerValues.getCurrentProcessingTimeInMs()))

    def one(self, op, at, wm):
        match op.partition(":"):
            case "reg", _, _:
                self.handle.registerTimer(at)
            case "regWm", _, _:
                self.handle.registerTimer(wm + at)
            case "del", _, _:
                self.handle.deleteTimer(at)
            case "list", _, _:
                return list(self.handle.listTimers())
            case "plan", _, what:
                self.todo.updateValue((at,), (what,))
                self.handle.registerTimer(at)

    def handleExpiredTimer(self, key, timerValues, expiredTimerInfo):
        at, wm = expiredTimerInfo.getExpiryTimeInMs(), timerValues.getCurrentWatermarkInMs()
        planned = self.todo.getValue((at,))
        what = planned and planned.what
        times = {"past": at - 10, "atWm": wm, "later": wm + 1}
        if what in times:
            self.handle.registerTimer(times[what])
        now = timerValues.getCurrentProcessingTimeInMs()
        yield key[0], "TIMER", printed((at, "wm", wm, "now", now, what, self.cnt.get()))
