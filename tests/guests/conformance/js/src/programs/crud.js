// Every row is one operation on one of the state variables.

import { ProcessorError } from "tidemill";

import { entries, repr } from "../python.js";

export class Crud {
  init(handle) {
    this.v = handle.valueState("v", "x INT, y STRING");
    this.l = handle.listState("l", "x INT");
    this.m = handle.mapState("m", "k STRING", "x INT");
  }

  // An op that begins with `!` lets its error pass; the error of others is what they emit.
  *handleInputRows(key, rows) {
    for (const { op, a, b } of rows) {
      let out;
      try {
        out = this.one(op.replace("!", ""), a, b);
      } catch (error) {
        if (op.startsWith("!") || !(error instanceof ProcessorError)) throw error;
        out = error.code;
      }
      yield { key, ev: op, out };
    }
  }

  one(op, a, b) {
    const { v, l, m } = this;
    const x = b === null ? null : Number(b);
    const k = { k: a };
    switch (op) {
      case "v.exists": return repr(v.exists());
      case "v.get": return repr(v.get());
      case "v.update": return repr(v.update({ x, y: a }));
      case "v.updateNulls": return repr(v.update({ x: null, y: null }));
      case "v.clear": return repr(v.clear());
      case "l.exists": return repr(l.exists());
      case "l.get": return repr(l.get());
      case "l.put": return repr(l.put([{ x }, { x: x === null ? null : x + 1 }]));
      case "l.putEmpty": return repr(l.put([]));
      case "l.append": return repr(l.append({ x }));
      case "l.appendList": return repr(l.appendAll([{ x }, { x }]));
      case "l.appendEmpty": return repr(l.appendAll([]));
      case "l.clear": return repr(l.clear());
      case "m.exists": return repr(m.exists());
      case "m.get": return this.mapped(k);
      case "m.contains": return repr(m.has(k));
      case "m.update": m.set(k, { x }); return repr(undefined);
      case "m.remove": return repr(m.delete(k));
      case "m.keys": return repr([...m.keys()]);
      case "m.values": return repr([...m.values()]);
      case "m.iter": return repr(entries(m));
      case "m.clear": return repr(m.clear());
      default: throw new ProcessorError("NO_SUCH_OP", op);
    }
  }

  // PySpark answers a Row here, and a tuple everywhere else.
  mapped(key) {
    const value = this.m.get(key);
    return value === undefined ? repr(value) : `Row(x=${repr(value.x)})`;
  }
}
