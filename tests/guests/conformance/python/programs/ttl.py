"""Value, list and map state that expire."""

from tidemill import Error, StatefulProcessor

from .printed import printed


class Ttl(StatefulProcessor):
    def init(self, handle):
        ttl_ms = int(handle.parameters.get("ttl_ms", "5000"))
        self.v = handle.getValueState("v", "x BIGINT", ttl_ms)
        self.l = handle.getListState("l", "x BIGINT", ttl_ms)
        self.m = handle.getMapState("m", "k STRING", "x BIGINT", ttl_ms)
        # Without TTL.
        self.n = handle.getValueState("n", "x BIGINT")

    def handleInputRows(self, key, rows, timerValues):
        for row in rows:
            yield key[0], row.op, printed(self.one(row.op, row.a, row.b))
        now = timerValues.getCurrentProcessingTimeInMs(), timerValues.getCurrentWatermarkInMs()
        yield key[0], "now", printed(now)

    def one(self, op, a, b):
        match op:
            case "set":
                self.v.update((b,))
                self.n.update((b,))
            case "append":
                self.l.appendValue((b,))
            case "put":
                self.l.put([(b,), (b + 1,)])
            case "mset":
                self.m.updateValue((a,), (b,))
            case "mremove":
                self.m.removeKey((a,))
            case "clear":
                self.v.clear()
            case "get":
                entries = [(key[0], value[0]) for key, value in self.m.iterator()]
                return (
                    self.v.exists(),
                    self.v.get(),
                    self.l.exists(),
                    list(self.l.get()),
                    self.m.exists(),
                    entries,
                    self.m.containsKey(("p",)),
                    self.n.get(),
                )
            case _:
                raise Error("NO_SUCH_OP", op)
