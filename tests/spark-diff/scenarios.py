"""Random queries for a script-driven processor, from a seed.

A query is settings and steps. Settings: `time_mode` (none, processing-time, event-time), `ttl_ms` (None: no variables with a
TTL), `delay_ms` of the watermark, `output_mode` and rows of an initial state (key, op and arg). A step is one trigger: the clock's time, the rows that have come (a row is scenario,
key, op, arg and event time), and whether the query was stopped and started again before it. A query carries many
scenarios, each a set of keys with a program of its own, so that an expensive engine is started once for all of them.

What is left out on purpose, since the engines differ there by decision (docs/spark.md): errors; removing and writing again a
map entry with a TTL (Spark evicts it at the old expiry); timers that a timer handler registers in the past or deletes while
they are due; re-registering the timer that fires.
"""
import random
from dataclasses import dataclass, field

T0_MS = 1_000_000
MODES = ("none", "processing-time", "event-time")


@dataclass
class Step:
    clock_ms: int
    rows: list
    restart: bool = False


@dataclass
class Query:
    name: str
    time_mode: str
    ttl_ms: int | None
    delay_ms: int
    output_mode: str = "append"
    initial: list = field(default_factory=list)
    steps: list = field(default_factory=list)


def query(seed, number, scenarios):
    """The query `number` of `seed` with so many scenarios."""
    rng = random.Random(f"{seed}/{number}")
    mode = MODES[number % len(MODES)]
    made = Query(
        name=f"{seed}-{number}",
        time_mode=mode,
        ttl_ms=rng.choice([1_000, 2_500, 5_000]) if mode == "processing-time" and rng.random() < 0.7 else None,
        delay_ms=rng.choice([0, 1_000, 10_000]),
        output_mode=rng.choice(["append", "update"]),
    )
    programs = [_Program(f"s{n}", rng, made) for n in range(scenarios)]
    if rng.random() < 0.4:
        made.initial = [row for program in programs for row in program.initial_rows()]
    clock_ms = T0_MS
    for index in range(rng.randint(6, 10)):
        clock_ms += rng.choice([1, 500, 1_000, 1_000, 2_500])
        rows = [row for program in programs for row in program.rows(index, clock_ms)]
        if index == 0 and not rows:
            rows = programs[0].rows(index, clock_ms, at_least=1)
        rng.shuffle(rows)
        # A stop only where rows follow: without them Spark runs nothing after a start.
        made.steps.append(Step(clock_ms, rows, restart=index > 0 and bool(rows) and rng.random() < 0.2))
    return made


class _Program:
    """Makes the rows of one scenario."""

    def __init__(self, name, rng, query):
        self.name, self.rng, self.query = name, rng, query
        self.keys = [f"{name}k{n}" for n in range(rng.randint(1, 4))]
        self.map_keys = [rng.choice(["a", "b", "aa", "", "ż", "k10", "k9"]) for _ in range(3)]
        self.removed = set()
        self.values = 0

    def rows(self, index, clock_ms, at_least=0):
        rng = self.rng
        many = rng.choice([0, 0, 1, 2, 4, 8]) if rng.random() < 0.8 else 12
        return [self._row(index, clock_ms) for _ in range(max(many, at_least))]

    def initial_rows(self):
        """Rows of an initial state, which write and read nothing back; keys of their own among them."""
        rng = self.rng
        ops = ["value.put", "list.append", "map.put"] + ["timer.register", "on_timer"] * (self.query.time_mode != "none")
        keys = self.keys + [f"{self.name}i"]
        chosen = ((rng.choice(keys), rng.choice(ops)) for _ in range(rng.choice([0, 1, 3])))
        return [{"key": key, "op": op, "arg": self._arg("", op, key, T0_MS)} for key, op in chosen]

    def _row(self, index, clock_ms):
        rng, mode = self.rng, self.query.time_mode
        key = rng.choice(self.keys)
        op, arg = self._op(key, clock_ms)
        event_ms = None
        if mode == "event-time":
            # Mostly going forward with the steps, some late, some null, some far ahead.
            event_ms = T0_MS + index * 4_000 + rng.choice([0, 1, 999, 2_000, 3_500, -4_000, -9_000, -20_000, 12_000])
            if rng.random() < 0.05:
                event_ms = None
        return {"scenario": self.name, "key": key, "op": op, "arg": arg, "ts": event_ms}

    def _op(self, key, clock_ms):
        rng, query = self.rng, self.query
        prefix = "ttl." if query.ttl_ms and rng.random() < 0.5 else ""
        ops = ["value.get", "value.exists", "value.put", "value.put", "value.clear", "list.get", "list.exists", "list.put",
               "list.append", "list.append", "list.clear", "map.get", "map.contains", "map.put", "map.put", "map.put",
               "map.remove", "map.iter", "map.keys", "map.values", "map.exists", "map.clear"]
        if query.time_mode != "none":
            ops += ["timer.register"] * 6 + ["timer.delete"] * 2 + ["timer.list"] * 2 + ["on_timer"] * 2
            # Reads of time are compared where both have the same one.
            ops += ["time"]
        op = rng.choice(ops)
        if op.startswith("timer.") or op == "time" or op == "on_timer":
            prefix = ""
        return prefix + op, self._arg(prefix, op, key, clock_ms)

    def _arg(self, prefix, op, key, clock_ms):
        rng = self.rng
        if op == "value.put":
            return self._value()
        if op in ("list.put", "list.append"):
            return ",".join(self._value() for _ in range(rng.randint(1, 3)))
        if op in ("map.get", "map.contains", "map.remove", "map.put"):
            user_key = rng.choice(self.map_keys)
            if prefix and op == "map.remove":
                self.removed.add((key, user_key))
            if prefix and op == "map.put":
                free = [k for k in self.map_keys if (key, k) not in self.removed]
                user_key = rng.choice(free) if free else f"n{self._value()}"
            return f"{user_key}={self._value()}" if op == "map.put" else user_key
        if op in ("timer.register", "timer.delete"):
            return self._expiry(clock_ms)
        if op == "on_timer":
            return self._on_timer()
        return ""

    def _value(self):
        self.values += 1
        return f"v{self.values}"

    def _expiry(self, clock_ms):
        rng = self.rng
        if self.query.time_mode == "event-time":
            return str(T0_MS + rng.choice([-20_000, -1, 0, 1, 3_000, 5_000, 8_000, 16_000, 24_000, 30_000]))
        return str(clock_ms + rng.choice([-5_000, -1, 0, 1, 1_000, 1_500, 2_500, 4_000]))

    def _on_timer(self):
        rng = self.rng
        steps = rng.sample(
            ["value.get", "value.put fired", "list.append fired", "list.get", "map.put fired=1", "map.iter", "value.clear",
             "timer.register +1500", "timer.register +4000"], rng.randint(1, 4))
        return ";".join(steps)
