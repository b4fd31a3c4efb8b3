// What only a language without static types can do: rows of any shape, values of any type. Every row is one operation; a
// fault of the SDK is what it emits. A row without an op does what the parameter `op` says, and a fault passes.

import { ProcessorError } from "tidemill";

const OUTPUT = {
  "out.columns": (key, ev) => ({ out: "a", ev, key }),
  "out.more": (key, ev) => ({ key, ev, out: "a", more: "b" }),
  "out.missing": (key, ev) => ({ key, ev }),
  "out.undefined": (key, ev) => ({ key, ev, out: undefined }),
  "out.type": (key, ev) => ({ key, ev, out: 1 }),
  "out.null": (key) => ({ key, ev: null, out: "a" }),
  "out.none": () => null,
  "out.text": () => "abc",
};

export class Dynamic {
  init(handle) {
    this.told = handle.parameter("op") ?? "";
    this.v = handle.valueState("v", "n BIGINT, t STRING");
    this.l = handle.listState("l", "n BIGINT");
    this.m = handle.mapState("m", "k STRING", "n BIGINT");
  }

  handleInputRows(key, rows) {
    const ops = Array.from(rows, ({ op }) => op);
    if (this.told === "promise") return Promise.resolve([]);
    if (this.told === "number") return 1;
    return ops.map((op) => this.one(op ?? this.told, op !== null, key));
  }

  one(op, caught, key) {
    if (op in OUTPUT) return OUTPUT[op](key, op);
    try {
      return { key, ev: op, out: printed(this.stored(op)) };
    } catch (error) {
      if (!caught || !(error instanceof ProcessorError)) throw error;
      return { key, ev: op, out: error.code };
    }
  }

  stored(op) {
    const { v, l, m } = this;
    switch (op) {
      case "v.columns": return v.update({ t: "a", n: 1 });
      case "v.nulls": return v.update({ n: null, t: null });
      case "v.bigint": return v.update({ n: 2n ** 62n, t: "a" });
      case "v.null": return v.update(null);
      case "v.undefined": return v.update(undefined);
      case "v.scalar": return v.update(1);
      case "v.missing": return v.update({ n: 1 });
      case "v.undefinedColumn": return v.update({ n: 1, t: undefined });
      case "v.type": return v.update({ n: "1", t: "a" });
      case "v.boolean": return v.update({ n: true, t: "a" });
      case "v.fraction": return v.update({ n: 1.5, t: "a" });
      case "v.nan": return v.update({ n: NaN, t: "a" });
      case "v.inexact": return v.update({ n: 2 ** 60, t: "a" });
      case "v.range": return v.update({ n: 2n ** 63n, t: "a" });
      case "v.get": return v.get();
      case "l.null": return l.append(null);
      case "l.arrayOfNull": return l.put([null]);
      case "l.noArray": return l.put(null);
      case "l.lateFault": return l.put([{ n: 1 }, { n: 2 }, { n: "3" }]);
      case "l.get": return l.get();
      case "m.null": return void m.set({ k: "k" }, null);
      case "m.nullKey": return void m.set(null, { n: 1 });
      case "m.undefinedKey": return void m.set(undefined, { n: 1 });
      case "m.getNullKey": return m.get(null);
      case "m.exists": return m.exists();
      case "raise": return null.n;
      default: throw new ProcessorError("NO_SUCH_OP", op);
    }
  }
}

function printed(value) {
  if (value === undefined) return "undefined";
  return JSON.stringify(value, (_, part) => (typeof part === "bigint" ? `${part}n` : part));
}
