// Value, list and map state that expire.

import { ProcessorError } from "tidemill";

import { entries, repr, tuple } from "../python.js";

export class Ttl {
  init(handle) {
    const options = { ttlMs: Number(handle.parameter("ttl_ms") ?? 5000) };
    this.v = handle.valueState("v", "x BIGINT", options);
    this.l = handle.listState("l", "x BIGINT", options);
    this.m = handle.mapState("m", "STRING", "BIGINT", options);
    // Without TTL.
    this.n = handle.valueState("n", "x BIGINT");
  }

  *handleInputRows(key, rows, timers) {
    for (const { op, a, b } of rows) {
      yield { key, ev: op, out: repr(this.one(op, a, b)) };
    }
    yield { key, ev: "now", out: repr(tuple(timers.processingTimeMs, timers.watermarkMs)) };
  }

  one(op, a, b) {
    const { v, l, m, n } = this;
    switch (op) {
      case "set":
        v.update({ x: b });
        n.update({ x: b });
        return undefined;
      case "append": return l.append({ x: b });
      case "put": return l.put([{ x: b }, { x: b + 1n }]);
      case "mset":
        m.set(a, b);
        return undefined;
      case "mremove": return m.delete(a);
      case "clear": return v.clear();
      case "get": return tuple(v.exists(), v.get(), l.exists(), [...l], m.exists(), entries(m), m.has("p"), n.get());
      default: throw new ProcessorError("NO_SUCH_OP", op);
    }
  }
}
