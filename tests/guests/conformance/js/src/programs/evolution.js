// A variable whose kind and schema the parameters give, so that they can change over a restart: what was there is emitted,
// then a row is written.
//
// `kind` is `v`, `l`, `m` or `none`; `schema` names the row type, `val` and `text` what is written; `name` and `ttl_ms` are
// the variable's; `map_key` is `k`, `kl` or `int` and names the type of a map's key; `also` is the kind of a second variable
// with the same schema, `extra` names a further one, `drop` one to delete.

import { ProcessorError } from "tidemill";

import { entries, Float, repr } from "../python.js";

/** Row types: their columns, and what is written of `val` (n, or i as an INT) and `text` (y). */
const SCHEMAS = {
  "xy": ["x INT, y STRING", ({ i, y }) => ({ x: i, y })],
  "xyz": ["x INT, y STRING, z BIGINT", ({ i, y, n }) => ({ x: i, y, z: n + 1n })],
  "zxy": ["z BIGINT, x INT, y STRING", ({ i, y, n }) => ({ z: n + 1n, x: i, y })],
  "x": ["x INT", ({ i }) => ({ x: i })],
  "y": ["y STRING", ({ y }) => ({ y })],
  "xyy": ["x INT, yy STRING", ({ i, y }) => ({ x: i, yy: y })],
  "yx": ["y STRING, x INT", ({ i, y }) => ({ y, x: i })],
  "long xy": ["x BIGINT, y STRING", ({ n, y }) => ({ x: n, y })],
  "double xy": ["x DOUBLE, y STRING", ({ i, y }) => ({ x: i + 0.5, y })],
  "string xy": ["x STRING, y STRING", ({ n, y }) => ({ x: String(n), y })],
  "nested a": ["x INT, n STRUCT<a: INT>", ({ i }) => ({ x: i, n: { a: i } })],
  "nested ab": ["x INT, n STRUCT<a: INT, b: STRING>", ({ i }) => ({ x: i, n: { a: i, b: "q" } })],
  "ints": ["x ARRAY<INT>", ({ i }) => ({ x: [i] })],
  "longs": ["x ARRAY<BIGINT>", ({ n }) => ({ x: [n] })],
};

/** Types of a map's key, and the only key. */
const MAP_KEYS = {
  k: ["k STRING", { k: "k" }],
  kl: ["k STRING, k2 STRING", { k: "k", k2: "l" }],
  int: ["k INT", { k: 5 }],
};

export class Evolution {
  init(handle) {
    const drop = handle.parameter("drop") ?? "";
    if (drop !== "") handle.deleteIfExists(drop);
    const schema = handle.parameter("schema") ?? "";
    this.variables = [];
    if (schema !== "") {
      if (!(schema in SCHEMAS)) throw new ProcessorError("NO_SUCH_SCHEMA", schema);
      this.variables.push(declare(handle, schema, handle.parameter("name") ?? "v", handle.parameter("kind") ?? "v"));
      const also = handle.parameter("also") ?? "";
      if (also !== "") this.variables.push(declare(handle, schema, "also", also));
    }
    // JavaScript has one kind of numbers, Python prints two.
    this.printed = schema === "double xy" ? ({ x, ...rest }) => ({ x: x === null ? x : new Float(x), ...rest }) : (row) => row;
    const extra = handle.parameter("extra");
    if (extra !== undefined) this.extra = handle.valueState(extra, "BIGINT");
  }

  *handleInputRows(key, rows) {
    const ops = Array.from(rows, ({ op }) => op);
    if (this.variables.length === 0) {
      yield { key, ev: "got", out: "-" };
      return;
    }
    for (const { got, write } of this.variables) {
      const out = repr(got(this.printed));
      // A row with the op `look` writes nothing.
      if (ops.some((op) => op !== "look")) write();
      yield { key, ev: "got", out };
    }
    if (this.extra !== undefined) {
      const extra = this.extra.get();
      if (extra !== undefined) yield { key, ev: "extra", out: repr(extra) };
      this.extra.update(1n);
    }
  }
}

/** Makes a variable, and answers what reads it and what writes to it. */
function declare(handle, schema, name, kind) {
  const [columns, rowOf] = SCHEMAS[schema];
  const val = handle.parameter("val") ?? "1";
  const row = rowOf({ n: BigInt(val), i: Number(val), y: handle.parameter("text") ?? "" });
  const options = { ttlMs: Number(handle.parameter("ttl_ms") ?? 0) };
  const mapKey = handle.parameter("map_key") ?? "k";
  if (kind === "v") {
    const value = handle.valueState(name, columns, options);
    return { got: (printed) => value.exists() ? printed(value.get()) : undefined, write: () => value.update(row) };
  }
  if (kind === "l") {
    const list = handle.listState(name, columns, options);
    return { got: (printed) => list.get().map(printed), write: () => list.append(row) };
  }
  if (kind === "m" && mapKey in MAP_KEYS) {
    const [keyColumns, key] = MAP_KEYS[mapKey];
    const map = handle.mapState(name, keyColumns, columns, options);
    return { got: () => entries(map), write: () => map.set(key, row) };
  }
  throw new ProcessorError("NO_SUCH_KIND", kind);
}
