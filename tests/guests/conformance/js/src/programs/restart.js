// A count that lives through restarts, and timers beside it.

import { repr, tuple } from "../python.js";
import { add } from "./timers.js";

export class Restart {
  init(handle) {
    this.n = handle.valueState("n", "n BIGINT");
    this.timeMode = handle.query.timeMode;
  }

  *handleInputRows(key, rows, timers) {
    const { processingTimeMs: now, watermarkMs: wm } = timers;
    const xs = Array.from(rows, ({ b }) => b ?? 0n);
    const n = add(this.n, BigInt(xs.length));
    // A large number is a time.
    for (const x of xs) if (x > 1000n) timers.register(x);
    const listed = this.timeMode === "none" ? undefined : timers.list();
    yield { key, ev: "ROWS", out: repr(tuple(n, xs, "now", now, "wm", wm, "timers", listed)) };
  }

  *handleExpiredTimer(key, timers, at) {
    const { processingTimeMs: now, watermarkMs: wm } = timers;
    yield { key, ev: "TIMER", out: repr(tuple(at, "now", now, "wm", wm, this.n.get())) };
  }
}
