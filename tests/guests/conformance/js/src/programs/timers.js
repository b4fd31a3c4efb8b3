// Timers of processing time: times are offsets to the batch's, or absolute where the op says `Abs`.

import { repr, tuple } from "../python.js";

const PLAN = "plan:";

export class ProcessingTime {
  init(handle) {
    // What to do when the timer of that time fires.
    this.todo = handle.mapState("todo", "BIGINT", "STRING");
    this.cnt = handle.valueState("cnt", "n BIGINT");
  }

  *handleInputRows(key, rows, timers) {
    const now = timers.processingTimeMs;
    for (const { op, b } of rows) {
      add(this.cnt, 1n);
      yield { key, ev: op, out: repr(this.one(op, b ?? 0n, timers)) };
    }
    yield { key, ev: "rows-done", out: repr(tuple(now, timers.watermarkMs)) };
  }

  one(op, d, timers) {
    const now = timers.processingTimeMs;
    switch (op) {
      case "reg": return timers.register(now + d);
      case "regAbs": return timers.register(d);
      case "del": return timers.delete(now + d);
      case "delAbs": return timers.delete(d);
      case "list": return timers.list();
    }
    if (!op.startsWith(PLAN)) return "noop";
    this.todo.set(now + d, op.slice(PLAN.length));
    return timers.register(now + d);
  }

  *handleExpiredTimer(key, timers, at) {
    const now = timers.processingTimeMs;
    const what = this.todo.get(at);
    const before = timers.list();
    // What registers a time that is due does so once, or it is due for ever.
    const again = (expiryMs) => {
      this.todo.delete(at);
      timers.register(expiryMs);
    };
    switch (what) {
      case "rearm": timers.register(now + 1000n); break;
      case "same": again(at); break;
      case "past": again(at - 10n); break;
      case "mid": again(at + 1n); break;
      case "delNext": timers.delete(at + 1n); break;
      case "clear": this.cnt.clear(); break;
    }
    yield { key, ev: "TIMER", out: repr(tuple(at, now, what, before, this.cnt.get())) };
  }
}

/** Counts n more, and answers how many there are. */
export function add(counted, n) {
  const sum = (counted.get()?.n ?? 0n) + n;
  counted.update({ n: sum });
  return sum;
}
