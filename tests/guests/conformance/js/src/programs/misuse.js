// A count, and what should not be done: the parameters `init`, `rows`, `timer` and `close` say what is done there.

import { ProcessorError } from "tidemill";

import { repr } from "../python.js";

export class Misuse {
  init(handle) {
    const told = (what) => handle.parameter(what) ?? "";
    this.n = handle.valueState("n", "BIGINT");
    this.told = { rows: told("rows"), timer: told("timer"), close: told("close") };
    const name = told("name");
    const options = { ttlMs: Number(handle.parameter("ttl_ms") ?? 1000) };
    switch (told("init")) {
      case "": break;
      case "boom": throw new Error("boom");
      case "value": handle.valueState(name, "BIGINT"); break;
      case "list": handle.listState(name, "BIGINT"); break;
      case "map": handle.mapState(name, "BIGINT", "BIGINT"); break;
      case "ttl value": handle.valueState("t", "BIGINT", options); break;
      case "ttl list": handle.listState("t", "BIGINT", options); break;
      case "ttl map": handle.mapState("t", "BIGINT", "BIGINT", options); break;
      case "ttl below a millisecond": handle.valueState("t", "BIGINT", { ttlMs: 0.001 }); break;
      case "get": this.n.get(); break;
      case "update": this.n.update(1n); break;
      case "exists": this.n.exists(); break;
      case "clear": this.n.clear(); break;
      case "list exists": handle.listState("l", "BIGINT").exists(); break;
      case "map exists": handle.mapState("m", "BIGINT", "BIGINT").exists(); break;
      case "delete": handle.deleteIfExists(name); break;
      default: throw new ProcessorError("NO_SUCH_OP", told("init"));
    }
  }

  *handleInputRows(key, rows, timers) {
    const count = BigInt([...rows].length);
    switch (this.told.rows) {
      case "": {
        const n = (this.n.get() ?? 0n) + count;
        this.n.update(n);
        yield { key, ev: "n", out: repr(n) };
        break;
      }
      case "boom": throw new Error("boom");
      case "coded": throw new ProcessorError("OF_MY_OWN", "boom");
      case "register": timers.register(1); break;
      case "register now": timers.register(0); break;
      case "delete": timers.delete(1); break;
      case "list": yield { key, ev: "timers", out: repr(timers.list()) }; break;
      case "times":
        yield { key, ev: "now", out: repr(timers.processingTimeMs) };
        yield { key, ev: "wm", out: repr(timers.watermarkMs) };
        break;
      case "nothing": break;
      case "two":
        yield { key, ev: "1", out: "1" };
        yield { key, ev: "2", out: "2" };
        break;
      default: throw new ProcessorError("NO_SUCH_OP", this.told.rows);
    }
  }

  handleExpiredTimer() {
    if (this.told.timer === "boom") throw new Error("boom");
  }

  close() {
    switch (this.told.close) {
      case "": break;
      case "boom": throw new Error("boom");
      case "get": this.n.get(); break;
      default: throw new ProcessorError("NO_SUCH_OP", this.told.close);
    }
  }
}
