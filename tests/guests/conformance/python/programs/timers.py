"""Timers of processing time: times are offsets to the batch's, or absolute where the op says `Abs`."""

from tidemill import StatefulProcessor

from .printed import printed


class ProcessingTime(StatefulProcessor):
    def init(self, handle):
        self.handle = handle
        # What to do when the timer of that time fires.
        self.todo = handle.getMapState("todo", "t BIGINT", "what STRING")
        self.cnt = handle.getValueState("cnt", "n BIGINT")

    def handleInputRows(self, key, rows, timerValues):
        now = timerValues.getCurrentProcessingTimeInMs()
        for row in rows:
            self.cnt.update((count(self.cnt) + 1,))
            yield key[0], row.op, printed(self.one(row.op, row.b or 0, now))
        yield key[0], "rows-done", printed((now, timerValues.getCurrentWatermarkInMs()))

    def one(self, op, d, now):
        handle = self.handle
        match op.partition(":"):
            case "reg", _, _:
                handle.registerTimer(now + d)
            case "regAbs", _, _:
                handle.registerTimer(d)
            case "del", _, _:
                handle.deleteTimer(now + d)
            case "delAbs", _, _:
                handle.deleteTimer(d)
            case "list", _, _:
                return list(handle.listTimers())
            case "plan", _, what:
                self.todo.updateValue((now + d,), (what,))
                handle.registerTimer(now + d)
            case _:
                return "noop"

    def handleExpiredTimer(self, key, timerValues, expiredTimerInfo):
        handle = self.handle
        at, now = expiredTimerInfo.getExpiryTimeInMs(), timerValues.getCurrentProcessingTimeInMs()
        planned = self.todo.getValue((at,))
        what = planned and planned.what
        before = list(handle.listTimers())
        # One that is due again at once is so once, or it is due for ever.
        again = {"same": at, "past": at - 10, "mid": at + 1}
        if what in again:
            self.todo.removeKey((at,))
            handle.registerTimer(again[what])
        elif what == "rearm":
            handle.registerTimer(now + 1000)
        elif what == "delNext":
            handle.deleteTimer(at + 1)
        elif what == "clear":
            self.cnt.clear()
        yield key[0], "TIMER", printed((at, now, what, before, self.cnt.get()))


def count(state):
    """The number in a value state, 0 if there is none."""
    found = state.get()
    return found[0] if found else 0
