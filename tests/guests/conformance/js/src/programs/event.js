// Timers of event time.

import { repr, tuple } from "../python.js";
import { add } from "./timers.js";

const PLAN = "plan:";

export class EventTime {
  init(handle) {
    this.cnt = handle.valueState("cnt", "n BIGINT");
    // What to do when the timer of that time fires.
    this.todo = handle.mapState("todo", "BIGINT", "STRING");
  }

  *handleInputRows(key, rows, timers) {
    const { watermarkMs: wm, processingTimeMs: now } = timers;
    for (const { op, b, ts } of rows) {
      add(this.cnt, 1n);
      const out = this.one(op ?? "", b ?? 0n, timers);
      yield { key, ev: "ROW", out: repr(tuple(ts?.ms, op, b, out)) };
    }
    yield { key, ev: "rows-done", out: repr(tuple("wm", wm, "now", now)) };
  }

  one(op, at, timers) {
    switch (op) {
      case "reg": return timers.register(at);
      case "regWm": return timers.register(timers.watermarkMs + at);
      case "del": return timers.delete(at);
      case "list": return timers.list();
    }
    if (!op.startsWith(PLAN)) return undefined;
    this.todo.set(at, op.slice(PLAN.length));
    return timers.register(at);
  }

  *handleExpiredTimer(key, timers, at) {
    const { watermarkMs: wm, processingTimeMs: now } = timers;
    const what = this.todo.get(at);
    switch (what) {
      case "past": timers.register(at - 10n); break;
      case "atWm": timers.register(wm); break;
      case "later": timers.register(wm + 1n); break;
    }
    yield { key, ev: "TIMER", out: repr(tuple(at, "wm", wm, "now", now, what, this.cnt.get())) };
  }
}
