// State that a query begins with.

import { repr, tuple } from "../python.js";
import { add } from "./timers.js";

export class WithInitialState {
  init(handle) {
    this.n = handle.valueState("n", "n BIGINT");
    // The clock of the initial rows, and whether there was something before each.
    this.seen = handle.valueState("seen", "STRING");
  }

  handleInitialState(key, { n, timer }, timers) {
    const exists = repr(this.n.exists());
    this.seen.update(`now ${timers.processingTimeMs} wm ${timers.watermarkMs} exists ${exists}`);
    add(this.n, n);
    if (timer !== null) timers.register(timer);
  }

  *handleInputRows(key, rows) {
    const ops = Array.from(rows, ({ op }) => op);
    add(this.n, BigInt(ops.length));
    yield { key, ev: "ROWS", out: repr(this.n.get()) };
    if (ops.includes("seen")) yield { key, ev: "SEEN", out: repr(this.seen.get()) };
  }

  handleExpiredTimer(key, timers, at) {
    return [{ key, ev: "TIMER", out: repr(tuple(at, this.n.get())) }];
  }
}
