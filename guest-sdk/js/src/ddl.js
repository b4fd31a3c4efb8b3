// Schemas in DDL: `name TYPE [NOT NULL], ...`, or a single type, which is a row of one column without a name.
//
// A parsed schema is { columns, single }. A column is { name, type, nullable }. A type is { kind } with what belongs to
// its kind: precision and scale, element, key and value, columns.

import { INVALID_SCHEMA, ProcessorError } from "./errors.js";

/** Types nest at most this deep; the host refuses more. */
const NESTING_MAX = 16;
/** Digits of the largest DECIMAL. */
const DECIMAL_DIGITS_MAX = 38;
/** The column's name of a row that is a single type. */
const VALUE = "value";

const SIMPLE_TYPES = new Map([
  ["BOOLEAN", "boolean"],
  ["TINYINT", "tinyint"], ["BYTE", "tinyint"],
  ["SMALLINT", "smallint"], ["SHORT", "smallint"],
  ["INT", "int"], ["INTEGER", "int"],
  ["BIGINT", "bigint"], ["LONG", "bigint"],
  ["FLOAT", "float"], ["REAL", "float"],
  ["DOUBLE", "double"],
  ["STRING", "string"],
  ["BINARY", "binary"],
  ["DATE", "date"],
  ["TIMESTAMP", "timestamp"], ["TIMESTAMP_LTZ", "timestamp"],
]);
const OTHER_TYPES = new Set(["DECIMAL", "DEC", "NUMERIC", "ARRAY", "MAP", "STRUCT"]);

/** Reads a list of columns, or a single type. */
export function parseSchema(ddl) {
  if (typeof ddl !== "string") throw new ProcessorError(INVALID_SCHEMA, `a schema is a text in DDL, not ${typeof ddl}`);
  const parser = new Parser(ddl);
  if (parser.isSingleType()) {
    const type = parser.type(NESTING_MAX);
    const nullable = parser.nullability();
    parser.expectEnd();
    return { columns: [{ name: VALUE, type, nullable }], single: true };
  }
  const columns = parser.columns(undefined, NESTING_MAX);
  parser.expectEnd();
  return { columns, single: false };
}

/** Prints columns. `stored`: without NOT NULL, as state is declared, so that fields can be added later. */
export function printColumns(columns, { stored = false, between = " " } = {}) {
  return columns
    .map(({ name, type, nullable }) => {
      const notNull = nullable || stored ? "" : " NOT NULL";
      return `${printName(name)}${between}${printType(type, stored)}${notNull}`;
    })
    .join(", ");
}

function printType(type, stored) {
  switch (type.kind) {
    case "decimal": return `DECIMAL(${type.precision},${type.scale})`;
    case "array": return `ARRAY<${printType(type.element, stored)}>`;
    case "map": return `MAP<${printType(type.key, stored)}, ${printType(type.value, stored)}>`;
    case "struct": return `STRUCT<${printColumns(type.columns, { stored, between: ": " })}>`;
    default: return type.kind.toUpperCase();
  }
}

function printName(name) {
  return /^[A-Za-z_]\w*$/.test(name) ? name : `\`${name.replaceAll("`", "``")}\``;
}

/** Words, names in backquotes, texts, and single characters. The engine has no tables of Unicode, so a word may have any other letter. */
const TOKEN = /\s*(?:([\w\u0080-\uffff]+)|`((?:[^`]|``)*)`|('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")|(\S))/y;

class Parser {
  constructor(ddl) {
    this.ddl = ddl;
    this.tokens = [];
    this.at = 0;
    TOKEN.lastIndex = 0;
    while (TOKEN.lastIndex < ddl.trimEnd().length) {
      const start = TOKEN.lastIndex;
      const [, word, name, text, symbol] = TOKEN.exec(ddl);
      this.tokens.push({ word, name: name?.replaceAll("``", "`"), text, symbol, start });
    }
  }

  /** One word, or one with `(` or `<` behind it, begins a type; with NOT NULL behind it, it is one too. */
  isSingleType() {
    const [first, second, third] = this.tokens;
    const word = first?.word?.toUpperCase();
    if (!SIMPLE_TYPES.has(word) && !OTHER_TYPES.has(word)) return false;
    return second === undefined || second.symbol === "(" || second.symbol === "<"
      || (second.word?.toUpperCase() === "NOT" && third?.word?.toUpperCase() === "NULL");
  }

  columns(end, nestingLeft) {
    const columns = [];
    const names = new Set();
    while (this.at < this.tokens.length && (end === undefined || this.peek().symbol !== end)) {
      if (columns.length > 0) this.expect(",");
      const column = this.column(nestingLeft);
      if (names.has(column.name.toLowerCase())) this.fail(`the name \`${column.name}\` stands there twice`);
      names.add(column.name.toLowerCase());
      columns.push(column);
    }
    return columns;
  }

  column(nestingLeft) {
    const token = this.take();
    const name = token.word ?? token.name;
    if (name === undefined) this.fail("the name of a column is missing", token);
    if (this.peek().symbol === ":") this.at += 1;
    const type = this.type(nestingLeft);
    const nullable = this.nullability();
    if (this.keyword("COMMENT") && this.take().text === undefined) this.fail("a comment is a text in quotes");
    return { name, type, nullable };
  }

  type(nestingLeft) {
    const token = this.take();
    const word = token.word?.toUpperCase();
    const kind = SIMPLE_TYPES.get(word);
    if (kind !== undefined) return { kind };
    if (nestingLeft === 0) this.fail(`types nest more than ${NESTING_MAX} deep`, token);
    switch (word) {
      case "DECIMAL": case "DEC": case "NUMERIC": return this.decimal();
      case "ARRAY": return this.between(() => ({ kind: "array", element: this.type(nestingLeft - 1) }));
      case "MAP": return this.between(() => {
        const key = this.type(nestingLeft - 1);
        this.expect(",");
        return { kind: "map", key, value: this.type(nestingLeft - 1) };
      });
      case "STRUCT": return this.between(() => ({ kind: "struct", columns: this.columns(">", nestingLeft - 1) }));
      default: return this.fail("there is no such type", token);
    }
  }

  decimal() {
    if (this.peek().symbol !== "(") return { kind: "decimal", precision: 10, scale: 0 };
    this.expect("(");
    const precision = this.number();
    let scale = 0;
    if (this.peek().symbol === ",") {
      this.at += 1;
      scale = this.number();
    }
    this.expect(")");
    if (precision < 1 || precision > DECIMAL_DIGITS_MAX || scale > precision) {
      this.fail(`DECIMAL(${precision},${scale}) has no values: 1 to ${DECIMAL_DIGITS_MAX} digits, no more of them after the point`);
    }
    return { kind: "decimal", precision, scale };
  }

  between(read) {
    this.expect("<");
    const type = read();
    this.expect(">");
    return type;
  }

  nullability() {
    if (!this.keyword("NOT")) return true;
    if (!this.keyword("NULL")) this.fail("NULL must follow NOT");
    return false;
  }

  number() {
    const token = this.take();
    if (!/^\d+$/.test(token.word ?? "")) this.fail("a number is missing", token);
    return Number(token.word);
  }

  keyword(keyword) {
    if (this.peek().word?.toUpperCase() !== keyword) return false;
    this.at += 1;
    return true;
  }

  expect(symbol) {
    const token = this.take();
    if (token.symbol !== symbol) this.fail(`\`${symbol}\` is missing`, token);
  }

  expectEnd() {
    if (this.at < this.tokens.length) this.fail("`,` or the end is missing");
  }

  peek() {
    return this.tokens[this.at] ?? { start: this.ddl.length };
  }

  take() {
    const token = this.peek();
    this.at += 1;
    return token;
  }

  fail(problem, token = this.peek()) {
    const rest = this.ddl.slice(token.start).trim();
    const place = rest === "" ? "at its end" : `before \`${rest.length > 40 ? `${rest.slice(0, 40)}...` : rest}\``;
    throw new ProcessorError(INVALID_SCHEMA, `the schema \`${this.ddl}\`: ${problem}, ${place}`);
  }
}
