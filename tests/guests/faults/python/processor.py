"""A processor that fails in every way that an author can. ../README.md says which there are."""

import sys

import tidemill
from tidemill import Row, StatefulProcessor


class Faults(StatefulProcessor):
    def init(self, handle):
        self.handle = handle
        self.fault = handle.parameters.get("fault", "")
        self.number = handle.getValueState("number", "value INT")
        self.by_name = handle.getMapState("by_name", "name STRING", "value BIGINT")
        if self.fault == "init":
            raise ValueError("a fault in init")
        if self.fault == "init-access":
            self.number.get()

    def handleInputRows(self, key, rows, timerValues):
        if key[0] == "bad" and self.fault == "timer":
            self.handle.registerTimer(timerValues.getCurrentProcessingTimeInMs())
        elif key[0] == "bad":
            yield from self.fail()
        for row in rows:
            yield Row(key=key[0], n=row.n)

    def handleExpiredTimer(self, key, timerValues, expiredTimerInfo):
        yield {"names": {}}["names"][key]

    def handleInitialState(self, key, initialState, timerValues):
        if key[0] == "bad" and self.fault == "initial-state":
            raise ValueError(f"a fault in the initial state at n = {initialState.n}")

    def close(self):
        if self.fault == "close":
            assert not self.fault, "a fault in close"

    def fail(self):
        match self.fault:
            case "rows":
                yield [1, 2, 3][len(self.fault)]
            case "own-code":
                raise tidemill.Error("OVERDRAWN", "the account is 5 short")
            case "emit-type":
                yield Row(key="bad", n="three")
            case "emit-missing":
                yield Row(key="bad")
            case "emit-null":
                yield Row(key=None, n=3)
            case "emit-other":
                yield 3
            case "state-type":
                self.number.update(("three",))
            case "state-range":
                self.number.update((1 << 31,))
            case "state-null":
                self.by_name.updateValue((None,), (1,))
            case "endless":
                while True:
                    pass
            case "print":
                for _ in range(100_000):
                    print("x" * 999)
            case "recursion":
                recurse("")
            case "memory":
                everything = []
                while True:
                    everything.append(bytearray(1 << 20))
            case "exit":
                sys.exit(3)
            case "" | "init" | "initial-state" | "close" | "init-access":
                pass
            case _:
                raise tidemill.Error("FAULT_UNKNOWN", f"there is no fault {self.fault!r} in Python")


def recurse(text):
    return recurse(text + ".")


tidemill.export(
    Faults,
    key="key STRING NOT NULL",
    input="n BIGINT NOT NULL",
    initialState="n BIGINT",
    output="key STRING NOT NULL, n BIGINT NOT NULL",
)
