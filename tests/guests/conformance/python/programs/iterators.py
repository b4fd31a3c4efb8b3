"""Iterators over more than one page, two of them at a time, and with other calls between their steps."""

from tidemill import Error, StatefulProcessor

from .printed import printed
from .timers import count

# Rows of more than 100 bytes, so that some thousands are several pages.
PAD = "-" * 100


class Iterators(StatefulProcessor):
    def init(self, handle):
        self.v = handle.getValueState("v", "n BIGINT")
        self.l = handle.getListState("l", "x BIGINT, pad STRING")
        self.m = handle.getMapState("m", "k BIGINT", "x BIGINT, pad STRING")

    def handleInputRows(self, key, rows, timerValues):
        for row in rows:
            yield key[0], row.op, printed(self.one(row.op, row.b))

    def one(self, op, n):
        l, m = self.l, self.m
        match op:
            case "l.fill":
                l.put((x, PAD) for x in range(n))
            case "m.fill":
                for x in range(n):
                    m.updateValue((x,), (x, PAD))
            case "l.first":
                return next(l.get()).x
            case "l.sum":
                return total(element.x for element in l.get())
            case "m.sum":
                return total(key.k + value.x for key, value in m.iterator())
            case "m.sumKeys":
                return total(key.k for key in m.keys())
            case "m.sumValues":
                return total(value.x for value in m.values())
            case "l.twice":
                return total(one.x + other.x for one, other in zip(l.get(), l.get()))
            case "l.andMap":
                return total(element.x + value.x for element, value in zip(l.get(), m.values()))
            case "l.busy":
                return self.busyList()
            case "m.busy":
                return self.busyMap()
            case _:
                raise Error("NO_SUCH_OP", op)

    def busyList(self):
        """Writes to all kinds of state, and reads them, while a list is walked."""
        seen = 0
        for element in self.l.get():
            seen += 1
            self.v.update((count(self.v) + element.x,))
            self.m.updateValue((element.x,), element)
            self.l.appendValue((-element.x, PAD))
        return seen, count(self.v), len(list(self.m.keys())), len(list(self.l.get()))

    def busyMap(self):
        """Removes the entries of a map while it is walked."""
        seen = 0
        for key in self.m.keys():
            self.m.removeKey(key)
            seen += not self.m.containsKey(key)
        return seen, self.m.exists()


def total(numbers):
    """How many numbers there are, and their sum."""
    numbers = list(numbers)
    return len(numbers), sum(numbers)
