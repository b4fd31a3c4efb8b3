"""A count, and what should not be done: the parameters `init`, `rows`, `timer` and `close` say what is done there."""

from tidemill import Error, StatefulProcessor

from .printed import printed
from .timers import count


class Misuse(StatefulProcessor):
    def init(self, handle):
        self.handle = handle
        self.told = handle.parameters
        self.n = handle.getValueState("n", "n BIGINT")
        name, ttl_ms = self.told.get("name", ""), int(self.told.get("ttl_ms", "1000"))
        match self.told.get("init", ""):
            case "":
                pass
            case "boom":
                raise RuntimeError("boom")
            case "value":
                handle.getValueState(name, "n BIGINT")
            case "list":
                handle.getListState(name, "n BIGINT")
            case "map":
                handle.getMapState(name, "n BIGINT", "n BIGINT")
            case "ttl value":
                handle.getValueState("t", "n BIGINT", ttl_ms)
            case "ttl list":
                handle.getListState("t", "n BIGINT", ttl_ms)
            case "ttl map":
                handle.getMapState("t", "n BIGINT", "n BIGINT", ttl_ms)
            case "ttl below a millisecond":
                handle.getValueState("t", "n BIGINT", 0.001)
            case "get":
                self.n.get()
            case "update":
                self.n.update((1,))
            case "exists":
                self.n.exists()
            case "clear":
                self.n.clear()
            case "list exists":
                handle.getListState("l", "n BIGINT").exists()
            case "map exists":
                handle.getMapState("m", "n BIGINT", "n BIGINT").exists()
            case "delete":
                handle.deleteIfExists(name)
            case unknown:
                raise Error("NO_SUCH_OP", unknown)

    def handleInputRows(self, key, rows, timerValues):
        rows = list(rows)
        match self.told.get("rows", ""):
            case "":
                n = count(self.n) + len(rows)
                self.n.update((n,))
                yield key[0], "n", printed(n)
            case "boom":
                raise RuntimeError("boom")
            case "coded":
                raise Error("OF_MY_OWN", "boom")
            case "register":
                self.handle.registerTimer(1)
            case "register now":
                self.handle.registerTimer(0)
            case "delete":
                self.handle.deleteTimer(1)
            case "list":
                yield key[0], "timers", printed(list(self.handle.listTimers()))
            case "times":
                yield key[0], "now", printed(timerValues.getCurrentProcessingTimeInMs())
                yield key[0], "wm", printed(timerValues.getCurrentWatermarkInMs())
            case "nothing":
                pass
            case "two":
                yield key[0], "1", "1"
                yield key[0], "2", "2"
            case unknown:
                raise Error("NO_SUCH_OP", unknown)

    def handleExpiredTimer(self, key, timerValues, expiredTimerInfo):
        if self.told.get("timer") == "boom":
            raise RuntimeError("boom")

    def close(self):
        match self.told.get("close", ""):
            case "":
                pass
            case "boom":
                raise RuntimeError("boom")
            case "get":
                self.n.get()
            case unknown:
                raise Error("NO_SUCH_OP", unknown)
