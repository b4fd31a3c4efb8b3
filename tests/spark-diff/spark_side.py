"""Runs queries of scenarios.py through PySpark's transformWithState, trigger by trigger, with a clock moved by hand.

`StreamingQueryManager.startQuery` takes a clock and a sink; it is private to Scala's callers only, so that Spark's own
ManualClock and MemorySink can be handed to it. With a trigger of 1 ms, one advance of the clock is one trigger.
"""
import datetime
import json
import os
import shutil
import sys
import time

from pyspark.sql import Row, SparkSession
from pyspark.sql.streaming import StatefulProcessor

SCHEMA = "scenario string, key string, op string, arg string, ts timestamp"
OUTPUT = "key string, op string, result string"
PROVIDER = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
# Those that Spark counts right also in Python, whatever the operations were.
METRICS = ("numRowsTotal", "numRowsDroppedByWatermark", "numValuesRemovedDueToTTLExpiry")
TIME_MODES = {"none": "None", "processing-time": "ProcessingTime", "event-time": "EventTime"}


def session(scratch):
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    # Spark's Python workers import this module.
    os.environ["PYTHONPATH"] = os.path.dirname(os.path.abspath(__file__))
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", "1")
        .config("spark.sql.streaming.stateStore.providerClass", PROVIDER)
        .config("spark.local.dir", os.path.join(scratch, "local"))
        .config("spark.sql.warehouse.dir", os.path.join(scratch, "warehouse"))
        .config("spark.driver.memory", "2g")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("OFF")
    return spark


class Script(StatefulProcessor):
    """What tests/guests/script does, op by op."""

    def __init__(self, time_mode, ttl_ms):
        self.time_mode, self.ttl_ms = time_mode, ttl_ms

    def init(self, handle):
        self.handle = handle
        self.on_timer = handle.getValueState("on_timer", "v string")
        self.variables = {"": self._make("", None)}
        if self.ttl_ms:
            self.variables["ttl."] = self._make("ttl_", self.ttl_ms)

    def _make(self, prefix, ttl_ms):
        handle = self.handle
        return (
            handle.getValueState(prefix + "value", "v string", ttl_ms),
            handle.getListState(prefix + "list", "v string", ttl_ms),
            handle.getMapState(prefix + "map", "k string", "v string", ttl_ms),
        )

    def handleInputRows(self, key, rows, timerValues):
        for row in rows:
            yield from self._step(key[0], row.op, row.arg or "", timerValues)

    def handleInitialState(self, key, initialState, timerValues):
        for _ in self._step(key[0], initialState.op, initialState.arg or "", timerValues):
            pass

    def handleExpiredTimer(self, key, timerValues, expiredTimerInfo):
        yield Row(key=key[0], op="timer", result=str(expiredTimerInfo.getExpiryTimeInMs()))
        got = self.on_timer.get()
        for step in (got[0] if got else "").split(";"):
            if step.strip():
                op, _, arg = step.strip().partition(" ")
                yield from self._step(key[0], op, arg, timerValues)

    def _step(self, key, op, arg, timers):
        answers, result = self._run(op, arg, timers)
        if answers:
            yield Row(key=key, op=op, result=result)

    def _run(self, op, arg, timers):
        prefix, name = ("ttl.", op[4:]) if op.startswith("ttl.") else ("", op)
        value, items, entries = self.variables[prefix]
        silent, boolean = (False, None), lambda b: (True, "true" if b else "false")
        first = lambda got: None if got is None else got[0]
        listed = lambda parts: (True, "[" + ",".join(parts) + "]")
        if name == "value.get":
            return True, first(value.get())
        if name == "value.exists":
            return boolean(value.exists())
        if name == "value.put":
            value.update((arg,))
            return silent
        if name == "value.clear":
            value.clear()
            return silent
        if name == "list.get":
            return listed([x[0] for x in items.get()])
        if name == "list.exists":
            return boolean(items.exists())
        if name == "list.put":
            items.put([(x,) for x in arg.split(",")])
            return silent
        if name == "list.append":
            items.appendList([(x,) for x in arg.split(",")])
            return silent
        if name == "list.clear":
            items.clear()
            return silent
        if name == "map.get":
            return True, first(entries.getValue((arg,)))
        if name == "map.contains":
            return boolean(entries.containsKey((arg,)))
        if name == "map.put":
            k, _, v = arg.partition("=")
            entries.updateValue((k,), (v,))
            return silent
        if name == "map.remove":
            entries.removeKey((arg,))
            return silent
        if name == "map.iter":
            return listed([f"{k[0]}={v[0]}" for k, v in entries.iterator()])
        if name == "map.keys":
            return listed([k[0] for k in entries.keys()])
        if name == "map.values":
            return listed([v[0] for v in entries.values()])
        if name == "map.exists":
            return boolean(entries.exists())
        if name == "map.clear":
            entries.clear()
            return silent
        if name == "timer.register":
            self.handle.registerTimer(self._expiry(arg, timers))
            return silent
        if name == "timer.delete":
            self.handle.deleteTimer(self._expiry(arg, timers))
            return silent
        if name == "timer.list":
            # Spark lists them in no order.
            return listed([str(t) for t in sorted(self.handle.listTimers())])
        if name == "time":
            return True, f"{timers.getCurrentProcessingTimeInMs()}/{timers.getCurrentWatermarkInMs()}"
        if name == "on_timer":
            self.on_timer.update((arg,))
            return silent
        raise ValueError(op)

    def _expiry(self, arg, timers):
        if not arg.startswith("+"):
            return int(arg)
        event = self.time_mode == "event-time"
        return (timers.getCurrentWatermarkInMs() if event else timers.getCurrentProcessingTimeInMs()) + int(arg[1:])

    def close(self):
        pass


def run(spark, query, scratch):
    """What each step made: its rows, (key, op, result), and METRICS."""
    folder = os.path.join(scratch, query.name)
    shutil.rmtree(folder, ignore_errors=True)
    source = os.path.join(folder, "in")
    os.makedirs(source)
    running = _Running(spark, query, source, os.path.join(folder, "checkpoint"))
    made = []
    try:
        for number, step in enumerate(query.steps):
            if step.restart:
                running.stop()
            made.append(running.step(number, step))
    finally:
        running.stop()
    shutil.rmtree(folder, ignore_errors=True)
    return made


class _Running:
    def __init__(self, spark, query, source, checkpoint):
        self.spark, self.query, self.source, self.checkpoint = spark, query, source, checkpoint
        self.reported = -1
        self.active, self.now_ms = None, query.steps[0].clock_ms - 1

    def start(self):
        jvm, query = self.spark._jvm, self.query
        rows = self.spark.readStream.schema(SCHEMA).format("json").load(self.source)
        if query.time_mode == "event-time":
            rows = rows.withWatermark("ts", f"{query.delay_ms} milliseconds")
        initial = None
        if query.initial:
            values = [(row["key"], row["op"], row["arg"]) for row in query.initial]
            initial = self.spark.createDataFrame(values, "key string, op string, arg string").groupBy("key")
        mode = query.output_mode.capitalize()
        out = rows.groupBy("key").transformWithState(
            Script(query.time_mode, query.ttl_ms), OUTPUT, mode, TIME_MODES[query.time_mode], initial)
        self.sink = jvm.org.apache.spark.sql.execution.streaming.sources.MemorySink()
        self.clock = jvm.org.apache.spark.util.ManualClock(self.now_ms)
        none = jvm.scala.Option.empty()
        self.active = self.spark._jsparkSession.streams().startQuery(
            none, none, jvm.scala.Option.apply(self.checkpoint), out._jdf, jvm.PythonUtils.toScalaMap({}), self.sink,
            getattr(jvm.org.apache.spark.sql.streaming.OutputMode, mode)(), False, True,
            jvm.org.apache.spark.sql.streaming.Trigger.ProcessingTime(1), self.clock, none, none)
        self.seen = self.fed = 0
        self._settle()

    def step(self, number, step):
        if self.active is None:
            self.start()
        if step.rows:
            hidden = os.path.join(self.source, f".{number:05d}")
            with open(hidden, "w", encoding="utf-8") as file:
                for row in step.rows:
                    file.write(json.dumps({**row, "ts": instant(row["ts"])}, ensure_ascii=False) + "\n")
            os.utime(hidden, (1_000_000 + number * 10,) * 2)
            os.rename(hidden, os.path.join(self.source, f"{number:05d}.json"))
            self.fed += len(step.rows)
        self.clock.advance(step.clock_ms - self.now_ms)
        self.now_ms = step.clock_ms
        self._settle()
        return self._rows(), self._metrics()

    def _metrics(self):
        """Of the batches of this step; totals are the last one's."""
        made = {}
        for report in (json.loads(report.json()) for report in self.active.recentProgress()):
            batch = report["batchId"]
            if "addBatch" not in report.get("durationMs", {}) or batch <= self.reported:
                continue
            self.reported = batch
            operator = report["stateOperators"][0]
            for name in METRICS:
                value = operator.get(name, operator["customMetrics"].get(name, 0))
                made[name] = value if name == "numRowsTotal" else made.get(name, 0) + value
        return made

    def _rows(self):
        rows, all_rows = [], self.sink.allData().iterator()
        while all_rows.hasNext():
            row = json.loads(all_rows.next().json())
            rows.append((row.get("key"), row.get("op"), row.get("result")))
        new, self.seen = rows[self.seen:], len(rows)
        return new

    def _settle(self):
        """Waits until the trigger is over: all rows are in, the query waits for its clock, and stays so."""
        calm, limit = 0, time.monotonic() + 120
        time.sleep(0.05)
        while calm < 4:
            if not self.active.isActive():
                raise RuntimeError(f"Spark's query failed: {self.active.exception()}")
            is_over = not self.active.status().isTriggerActive() and self._rows_in() == self.fed
            calm = calm + 1 if is_over else 0
            if time.monotonic() > limit:
                raise RuntimeError("a trigger did not end within two minutes")
            time.sleep(0.05)

    def _rows_in(self):
        return sum(json.loads(report.json())["numInputRows"] for report in self.active.recentProgress())

    def stop(self):
        if self.active is not None:
            self.active.stop()
            self.active = None


def instant(ms):
    if ms is None:
        return None
    return datetime.datetime.fromtimestamp(ms / 1000, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"
