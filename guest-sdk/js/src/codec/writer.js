// Writes the code that packs rows, with each value checked: one function per schema, in which the place of every column is
// a constant. Layout: `wit/README.md`, "Packed rows". In the code, `b` is a Buffer, `r` the word where a row begins, `e`
// where what is written so far ends. What is zero is not written: behind what was written, a Buffer is zero.

import { access, bitmapWords, next } from "./layout.js";
import { SLOT_DECIMAL_DIGITS } from "./values.js";

const INTEGER_BITS = { tinyint: 8, smallint: 16, int: 32 };

export class WriterCode {
  /** @param {{ keyed: boolean }} options keyed: -0.0 becomes 0.0, as where bytes are compared */
  constructor(options) {
    this.options = options;
    this.functions = [];
  }

  /** A function `(b, r, x)` that packs the row x at word r and answers where it ends. */
  row(schema, path = "") {
    return this.#define("row", "b, r, x", `${this.#rowBody(schema, path)} return e;`);
  }

  /** A function `(b, variable, group, x)` that adds an op whose payload is the row x; `(b, group, x)` where it has no variable. */
  op(schema, op, { hasVariable }) {
    return this.#define("op", `b, ${hasVariable ? "variable, " : ""}group, x`, `
      const head = b.end, r = head + 4;
      try {
        ${this.#rowBody(schema, "")}
        i32[head] = ${op};
        ${hasVariable ? "i32[head + 1] = variable;" : ""}
        i32[head + 2] = group;
        i32[head + 3] = (e - r) << 2;
        b.end = e;
      } catch (error) {
        b.discard();
        throw error;
      }`);
  }

  /** Packs the row `x` at word `r`; leaves `e` behind it, and `i32` valid. */
  #rowBody({ columns, single }, path) {
    const bitmap = bitmapWords(columns.length);
    const isRow = single ? "" : `if (typeof x !== "object" || x === null) notRow(x, ${JSON.stringify(path)});`;
    const written = columns.map((column, at) => {
      const place = path === "" ? column.name : `${path}.${column.name}`;
      const setNull = column.nullable ? `i32[r + ${at >> 5}] |= ${1 << (at & 31)};` : "";
      return `v = ${single ? "x" : access("x", column.name)};
        ${this.#value(column, setNull, `r + ${2 * (bitmap + at)}`, place)}`;
    });
    return `${isRow}
      let e = r + ${2 * (bitmap + columns.length)}, v;
      if ((e << 2) > b.capacity) b.reserve(e << 2);
      let { i32 } = b;
      ${written.join("\n")}`;
  }

  /** Statements that write `v` into slot `s` of the row at `r`. */
  #value({ type, nullable }, setNull, s, path) {
    const column = JSON.stringify(path);
    const isNull = nullable
      ? `if (v === null) { ${setNull} }`
      : `if (v === null) nullFault(${column});`;
    const [test, write, otherwise] = this.#usual(type, s, path, column);
    return `if (${test}) { ${write} } else ${isNull} else ${otherwise}`;
  }

  /** A test for the values that come all the time, what writes those, and what to do with the rest. */
  #usual(type, s, path, column) {
    const part = (write) => `i32[${s}] = (e - r) << 2; ${write} i32 = b.i32;`;
    const nested = (call) => part(`{ const start = e; e = ${call}; b.i32[${next(s)}] = (e - start) << 2; }`);
    const wrong = (what) => `wrong(v, ${column}, "${what}");`;
    switch (type.kind) {
      case "boolean": return ["v === true || v === false", `if (v) i32[${s}] = 1;`, wrong("BOOLEAN")];
      case "tinyint": case "smallint": case "int": {
        const shift = 32 - INTEGER_BITS[type.kind];
        const cut = shift === 0 ? "v | 0" : `v << ${shift} >> ${shift}`;
        return [`typeof v === "number" && v === (${cut})`, `i32[${s}] = v; if (v < 0) i32[${next(s)}] = -1;`, `notInteger(v, ${column}, "${type.kind.toUpperCase()}");`];
      }
      case "bigint": return [`typeof v === "number" && v === (v | 0)`, `i32[${s}] = v; if (v < 0) i32[${next(s)}] = -1;`, `putBigint(b, ${s}, v, ${column});`];
      case "float": return [`typeof v === "number"`, this.#double(s, `float(v, ${column})`), wrong("FLOAT")];
      case "double": return [`typeof v === "number"`, this.#double(s, "v"), wrong("DOUBLE")];
      case "date": return ["v instanceof PlainDate", `i32[${s}] = v.days; if (v.days < 0) i32[${next(s)}] = -1;`, wrong("DATE (a PlainDate)")];
      case "timestamp": return ["v instanceof Timestamp", `b.i64[${s} >> 1] = v.micros;`, `putTimestamp(b, ${s}, v, ${column});`];
      case "decimal": {
        const rest = `v, ${type.precision}, ${type.scale}, ${column}`;
        const write = type.precision <= SLOT_DECIMAL_DIGITS
          ? `putDecimal(b, ${s}, ${rest});`
          : part(`e = putLargeDecimal(b, e, ${s}, ${rest});`);
        return ["v !== null", write, ";"];
      }
      case "string": return [`typeof v === "string"`, part(`e = b.putText(e, ${next(s)}, v);`), wrong("STRING")];
      case "binary": return ["v instanceof Uint8Array", part(`e = b.putBytes(e, ${next(s)}, v);`), wrong("BINARY (a Uint8Array)")];
      case "array": return ["Array.isArray(v)", nested(`${this.#array(type, path)}(b, e, v)`), wrong("ARRAY")];
      case "map": return ["v instanceof Map", nested(`${this.#map(type, path)}(b, e, v)`), wrong("MAP (a Map)")];
      case "struct": return ["v !== null && v !== undefined", nested(`${this.row(type, path)}(b, e, v)`), wrong("STRUCT")];
      default: throw new TypeError(`no writer for ${type.kind}`);
    }
  }

  #double(s, value) {
    const zero = this.options.keyed ? " + 0" : "";
    return `if (v === v) b.f64[${s} >> 1] = ${value}${zero}; else i32[${next(s)}] = NAN_HIGH;`;
  }

  /** A function `(b, at, x)` that writes the part of an ARRAY and answers where it ends. */
  #array({ element, nullable = true }, path) {
    return this.#define("array", "b, at, x", `
      const count = x.length, r = at + 2, first = r + (count + 63 >>> 6 << 1);
      let e = first + 2 * count, v;
      b.reserve(e << 2);
      let { i32 } = b;
      i32[at] = count;
      for (let n = 0; n < count; n += 1) {
        const s = first + 2 * n;
        v = x[n];
        ${this.#value({ type: element, nullable }, "i32[r + (n >> 5)] |= 1 << (n & 31);", "s", `${path}[]`)}
      }
      return e;`);
  }

  /** A function `(b, at, x)` that writes the part of a MAP, its entries in the order of their packed keys. */
  #map(type, path) {
    const column = JSON.stringify(path);
    // The order is that of keys as they are stored, and these have one zero.
    const keyed = new WriterCode({ keyed: true });
    keyed.functions = this.functions;
    const keyRow = keyed.row({ columns: [{ name: "key", type: type.key, nullable: false }], single: true }, path);
    const keys = keyed.#array({ element: type.key, nullable: false }, `${path} key`);
    const values = this.#array({ element: type.value }, `${path} value`);
    return this.#define("map", "b, at, x", `
      const scratch = Buffer.ofCapacity(256);
      const entries = [];
      for (const [key, value] of x) {
        if (key === null) nullKey(${column});
        scratch.u8.fill(0);
        const end = ${keyRow}(scratch, 0, key);
        entries.push({ key, value, packed: scratch.u8.slice(0, end << 2) });
      }
      entries.sort((left, right) => compareBytes(left.packed, right.packed) || sameKeys(${column}));
      const middle = ${keys}(b, at + 6, entries.map((entry) => entry.key));
      const end = ${values}(b, middle, entries.map((entry) => entry.value));
      const { i32 } = b;
      i32[at + 2] = 24;
      i32[at + 3] = (middle - at - 6) << 2;
      i32[at + 4] = (middle - at) << 2;
      i32[at + 5] = (end - middle) << 2;
      return end;`);
  }

  #define(what, parameters, body) {
    const name = `${what}${this.functions.length}`;
    this.functions.push(`function ${name}(${parameters}) { ${body} }`);
    return name;
  }
}
