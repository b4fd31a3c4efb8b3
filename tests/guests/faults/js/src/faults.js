// A processor that fails in every way that an author can. ../../README.md says which there are.

import { exportProcessor, ProcessorError } from "tidemill";

class Faults {
  init(handle) {
    this.fault = handle.parameter("fault") ?? "";
    this.number = handle.valueState("number", "INT");
    this.byName = handle.mapState("by_name", "STRING", "BIGINT");
    if (this.fault === "init") throw new Error("a fault in init");
    if (this.fault === "init-access") this.number.get();
  }

  *handleInputRows(key, rows, timers) {
    if (key === "bad" && this.fault === "timer") timers.register(timers.processingTimeMs);
    else if (key === "bad") yield* this.fail();
    for (const { n } of rows) yield { key, n };
  }

  handleExpiredTimer(key, timers, expiryMs) {
    return undefined[key][expiryMs];
  }

  handleInitialState(key, { n }) {
    if (key === "bad" && this.fault === "initial-state") throw new RangeError(`a fault in the initial state at n = ${n}`);
  }

  close() {
    if (this.fault === "close") throw new Error("a fault in close");
  }

  *fail() {
    switch (this.fault) {
      case "rows": return [1, 2, 3][this.fault.length].toFixed();
      case "own-code": throw new ProcessorError("OVERDRAWN", "the account is 5 short");
      case "emit-type": return yield { key: "bad", n: "three" };
      case "emit-missing": return yield { key: "bad" };
      case "emit-null": return yield { key: null, n: 3 };
      case "emit-other": return yield 3;
      case "state-type": return this.number.update("three");
      case "state-range": return this.number.update(2 ** 31);
      case "state-null": return this.byName.set(null, 1);
      case "endless": for (;;);
      case "print": return print();
      case "recursion": return recurse("");
      case "memory": return fill();
      case "": case "init": case "initial-state": case "close": case "init-access": return;
      default: throw new ProcessorError("FAULT_UNKNOWN", `there is no fault ${JSON.stringify(this.fault)} in JavaScript`);
    }
  }
}

/** 100 MB. */
function print() {
  const line = "x".repeat(999);
  for (let at = 0; at < 100_000; at += 1) console.log(line);
}

function recurse(text) {
  return `${recurse(`${text}.`)}.`;
}

function fill() {
  const all = [];
  for (;;) all.push(new Uint8Array(1 << 20).fill(1));
}

exportProcessor(Faults, {
  key: "STRING NOT NULL",
  input: "n BIGINT NOT NULL",
  initialState: "n BIGINT",
  output: "key STRING NOT NULL, n BIGINT NOT NULL",
});
