// Writes the code that reads packed rows: one function per schema, in which the place of every column is a constant.
// Layout: `wit/README.md`, "Packed rows". In the code, `b` is a Buffer, `r` the word where a row begins, `s` that of a slot.

import { bitmapWords, next, property } from "./layout.js";
import { SLOT_DECIMAL_DIGITS } from "./values.js";

export class ReaderCode {
  /** @param {{ bigint: "number" | "bigint" }} options what a BIGINT is read as */
  constructor(options) {
    this.options = options;
    this.functions = [];
  }

  /** A function `(b, r)` that reads a row of these columns; `single`: the one column's value in place of an object. */
  row({ columns, single }, path = "") {
    const whole = this.#rowValue(columns, single, path, false);
    const nulls = nullWords(columns);
    if (nulls.length === 0) return this.#define("row", "b, r", `return ${whole};`);
    const withNulls = this.#define("rowWithNulls", "b, r", `return ${this.#rowValue(columns, single, path, true)};`);
    return this.#define("row", "b, r", `return ${nulls.join(" | ")} ? ${withNulls}(b, r) : ${whole};`);
  }

  /** A function `(b, r, count)` that reads rows with their lengths before them. */
  rows(schema) {
    const { columns, single } = schema;
    const whole = this.#rowValue(columns, single, "", false);
    const nulls = nullWords(columns);
    const value = nulls.length === 0 ? whole : `${nulls.join(" | ")} ? ${this.row(schema)}(b, r) : ${whole}`;
    // Most groups have one row, and a loop costs as much as that.
    return this.#define("rows", "b, r, count", `
      if (count === 1) {
        r += 2;
        return [${value}];
      }
      const rows = [];
      for (let row = 0; row < count; row += 1) {
        const words = u32[r] >> 2;
        r += 2;
        rows.push(${value});
        r += words;
      }
      return rows;`);
  }

  #rowValue(columns, single, path, withNulls) {
    const values = columns.map((column, at) => {
      const place = path === "" ? column.name : `${path}.${column.name}`;
      const value = this.#value(column.type, "r", `r + ${2 * (bitmapWords(columns.length) + at)}`, place);
      return withNulls && column.nullable ? `u32[r + ${at >> 5}] >>> ${at & 31} & 1 ? null : ${value}` : value;
    });
    if (single) return `(${values[0]})`;
    return `({ ${columns.map((column, at) => `${property(column.name)}: ${values[at]}`).join(", ")} })`;
  }

  /** An expression for the value in slot `s` of the row at `r`. */
  #value(type, r, s, path) {
    const part = `(${r} << 2) + u32[${s}]`;
    switch (type.kind) {
      case "boolean": return `u32[${s}] !== 0`;
      case "tinyint": case "smallint": case "int": return `i32[${s}]`;
      case "bigint":
        return this.options.bigint === "bigint"
          ? `i64[${s} >> 1]`
          : `((high = i32[${next(s)}]) === 0 ? u32[${s}] : wide(high, u32[${s}], ${JSON.stringify(path)}))`;
      case "float": case "double": return `f64[${s} >> 1]`;
      case "date": return `new PlainDate(i32[${s}])`;
      case "timestamp": return `new Timestamp(i64[${s} >> 1])`;
      case "decimal":
        return type.precision <= SLOT_DECIMAL_DIGITS
          ? `new Decimal(i64[${s} >> 1], ${type.scale})`
          : `largeDecimal(b, ${part}, u32[${next(s)}], ${type.scale})`;
      case "string": return `((length = u32[${next(s)}]) === 0 ? "" : utf8.decode(u8.subarray(start = ${part}, start + length)))`;
      case "binary": return `u8.slice(start = ${part}, start + u32[${next(s)}])`;
      case "array": return `${this.#array(type, path)}(b, ${r} + (u32[${s}] >> 2))`;
      case "map": return `${this.#map(type, path)}(b, ${r} + (u32[${s}] >> 2))`;
      case "struct": return `${this.row(type, path)}(b, ${r} + (u32[${s}] >> 2))`;
      default: throw new TypeError(`no reader for ${type.kind}`);
    }
  }

  /** A function `(b, at)` that reads the part of an ARRAY. */
  #array(type, path) {
    return this.#define("array", "b, at", `
      const count = u32[at], r = at + 2, first = r + (count + 63 >>> 6 << 1), values = [];
      for (let n = 0; n < count; n += 1) {
        values.push(u32[r + (n >> 5)] >>> (n & 31) & 1 ? null : ${this.#value(type.element, "r", "(first + 2 * n)", `${path}[]`)});
      }
      return values;`);
  }

  /** A function `(b, r)` that reads the part of a MAP: a row of two ARRAYs. */
  #map(type, path) {
    const keys = this.#array({ element: type.key }, `${path} key`);
    const values = this.#array({ element: type.value }, `${path} value`);
    return this.#define("map", "b, r", `
      const keys = ${keys}(b, r + (u32[r + 2] >> 2)), values = ${values}(b, r + (u32[r + 4] >> 2)), map = new Map();
      for (let n = 0; n < keys.length; n += 1) map.set(keys[n], values[n]);
      return map;`);
  }

  #define(what, parameters, body) {
    const name = `${what}${this.functions.length}`;
    const views = ["u8", "u32", "i32", "f64", "i64"].filter((view) => new RegExp(`\\b${view}\\b`).test(body));
    const scratch = ["high", "length", "start"].filter((word) => new RegExp(`\\b${word} = `).test(body));
    this.functions.push(`function ${name}(${parameters}) {
      ${views.length > 0 ? `const { ${views.join(", ")} } = b;` : ""}
      ${scratch.length > 0 ? `let ${scratch.join(", ")};` : ""}
      ${body}
    }`);
    return name;
  }
}

/** Expressions for the words of the bitmap that can have a bit. */
function nullWords(columns) {
  const words = new Set(columns.flatMap((column, at) => (column.nullable ? [at >> 5] : [])));
  return [...words].map((word) => `u32[r + ${word}]`);
}
