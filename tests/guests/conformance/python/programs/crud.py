"""Every row is one operation on one of the state variables."""

from tidemill import Error, StatefulProcessor

from .printed import printed


class Crud(StatefulProcessor):
    def init(self, handle):
        self.v = handle.getValueState("v", "x INT, y STRING")
        self.l = handle.getListState("l", "x INT")
        self.m = handle.getMapState("m", "k STRING", "x INT")

    def handleInputRows(self, key, rows, timerValues):
        """An op that begins with `!` lets its error pass; the error of others is what they emit."""
        for row in rows:
            try:
                out = self.one(row.op.removeprefix("!"), row.a, row.b)
            except Error as error:
                if row.op.startswith("!"):
                    raise
                out = error.code
            yield key[0], row.op, out

    def one(self, op, a, b):
        if op == "m.get":
            # PySpark answers a Row here too, with its names.
            return repr(self.m.getValue((a,)))
        following = None if b is None else b + 1
        ops = {
            "v.exists": lambda: self.v.exists(),
            "v.get": lambda: self.v.get(),
            "v.update": lambda: self.v.update((b, a)),
            "v.updateNulls": lambda: self.v.update((None, None)),
            "v.clear": lambda: self.v.clear(),
            "l.exists": lambda: self.l.exists(),
            "l.get": lambda: list(self.l.get()),
            "l.put": lambda: self.l.put([(b,), (following,)]),
            "l.putEmpty": lambda: self.l.put([]),
            "l.append": lambda: self.l.appendValue((b,)),
            "l.appendList": lambda: self.l.appendList([(b,), (b,)]),
            "l.appendEmpty": lambda: self.l.appendList([]),
            "l.clear": lambda: self.l.clear(),
            "m.exists": lambda: self.m.exists(),
            "m.contains": lambda: self.m.containsKey((a,)),
            "m.update": lambda: self.m.updateValue((a,), (b,)),
            "m.remove": lambda: self.m.removeKey((a,)),
            "m.keys": lambda: list(self.m.keys()),
            "m.values": lambda: list(self.m.values()),
            "m.iter": lambda: list(self.m.iterator()),
            "m.clear": lambda: self.m.clear(),
        }
        if op not in ops:
            raise Error("NO_SUCH_OP", op)
        return printed(ops[op]())
