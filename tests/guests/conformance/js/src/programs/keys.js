// A count per key, with what the rows of a batch brought.

import { repr, tuple } from "../python.js";

export class Keys {
  init(handle) {
    this.n = handle.valueState("n", "BIGINT");
  }

  handleInputRows(key, rows) {
    const xs = Array.from(rows, ({ b }) => b ?? 0n);
    const n = (this.n.get() ?? 0n) + BigInt(xs.length);
    this.n.update(n);
    return [{ key, ev: "ROWS", out: repr(tuple(n, xs)) }];
  }
}
