"""A count per key, with what the rows of a batch brought."""

from tidemill import StatefulProcessor

from .printed import printed
from .timers import count


class Keys(StatefulProcessor):
    def init(self, handle):
        self.n = handle.getValueState("n", "n BIGINT")

    def handleInputRows(self, key, rows, timerValues):
        xs = [row.b or 0 for row in rows]
        n = count(self.n) + len(xs)
        self.n.update((n,))
        yield key[0], "ROWS", printed((n, xs))
