"""What only a language without static types can do: rows of any shape, values of any type. Every row is one operation; a
fault of the SDK is what it emits. A row without an op does what the parameter `op` says, and a fault passes.
"""

import datetime
from decimal import Decimal

from tidemill import Error, Row, StatefulProcessor
from tidemill.types import ArrayType, IntegerType, LongType, MapType, StringType, StructField, StructType, TimestampType

NESTED = StructType([
    StructField("lists", ArrayType(ArrayType(IntegerType()))),
    StructField("maps", MapType(StringType(), ArrayType(LongType()))),
    StructField("rows", ArrayType(StructType([StructField("at", TimestampType()), StructField("n", LongType())]))),
])
NOON = datetime.datetime(2026, 1, 1, 12, 0, 0, 250, tzinfo=datetime.timezone.utc)


class Dynamic(StatefulProcessor):
    def init(self, handle):
        self.told = handle.parameters.get("op", "")
        self.v = handle.getValueState("v", "n BIGINT, t STRING")
        self.l = handle.getListState("l", "n BIGINT")
        self.m = handle.getMapState("m", "k STRING", "n BIGINT")
        self.d = handle.getValueState("d", "d DECIMAL(10, 2)")
        self.nested = handle.getValueState("nested", NESTED)

    def handleInputRows(self, key, rows, timerValues):
        for row in rows:
            op = row.op or self.told
            if op.startswith("out."):
                yield self.emitted(op, key[0])
                continue
            try:
                out = repr(self.stored(op))
            except Error as error:
                if row.op is None:
                    raise
                out = error.code
            yield key[0], op, out

    def emitted(self, op, key):
        """A row to emit: key, ev NOT NULL and out."""
        rows = {
            "out.tuple": (key, op, "a"),
            "out.list": [key, op, "a"],
            "out.row": Row(out="a", ev=op, key=key),
            "out.dict": {"out": "a", "ev": op, "key": key},
            "out.short": (key, op),
            "out.missing": {"ev": op, "key": key},
            "out.extra": Row(key=key, ev=op, out="a", more="b"),
            "out.renamed": Row(key=key, ev=op, result="a"),
            "out.type": (key, op, 1),
            "out.null": (key, None, "a"),
            "out.none": None,
            "out.text": "abc",
        }
        return rows[op]

    def stored(self, op):
        v, l, m, d = self.v, self.l, self.m, self.d
        match op:
            case "v.tuple":
                v.update((1, "a"))
            case "v.list":
                v.update([2, "b"])
            case "v.row":
                v.update(Row(t="c", n=3))
            case "v.dict":
                v.update({"t": "d", "n": 4})
            case "v.none":
                v.update(None)
            case "v.short":
                v.update((1,))
            case "v.long":
                v.update((1, "a", 2))
            case "v.missing":
                v.update({"n": 1})
            case "v.extra":
                v.update({"n": 1, "t": "a", "more": 2})
            case "v.scalar":
                v.update(1)
            case "v.type":
                v.update(("1", "a"))
            case "v.float":
                v.update((1.0, "a"))
            case "v.range":
                v.update((1 << 63, "a"))
            case "v.surrogate":
                v.update((1, "\ud800"))
            case "v.get":
                return v.get()
            case "l.none":
                l.appendValue(None)
            case "l.listOfNone":
                l.put([None])
            case "l.noList":
                l.put(None)
            case "l.lateFault":
                l.put([(1,), (2,), ("3",)])
            case "l.get":
                return list(l.get())
            case "m.none":
                m.updateValue(("k",), None)
            case "m.noneKey":
                m.updateValue(None, (1,))
            case "m.getNoneKey":
                m.getValue(None)
            case "m.exists":
                return m.exists()
            case "d.int":
                d.update((5,))
                return d.get()
            case "d.decimal":
                d.update((Decimal("1.5"),))
                return d.get()
            case "d.zeros":
                d.update((Decimal("2.5000"),))
                return d.get()
            case "d.digits":
                d.update((Decimal("1.005"),))
            case "d.range":
                d.update((10**8,))
            case "d.float":
                d.update((1.5,))
            case "nested":
                self.nested.update(([[1, 2], [], [None]], {"b": [1 << 40], "a": []}, [(NOON, 1), Row(n=None, at=None)]))
                return self.nested.get()
            case "nested.again":
                found = self.nested.get()
                return found.maps["b"], found.rows[0].at == NOON, found.rows[1].n
            case "nested.type":
                self.nested.update(([[1, "2"]], {}, []))
            case "nested.noneKey":
                self.nested.update(([], {None: []}, []))
            case "raise":
                return 1 / 0
            case _:
                raise Error("NO_SUCH_OP", op)
