// Packed rows to objects and back: a codec per schema, of generated code, made once.
//
// Generated, because the engine of a component is an interpreter: a loop over a table of columns costs several times what
// straight code does.

import { Buffer } from "../buffer.js";
import { parseSchema } from "../ddl.js";
import { EMIT, VALUE_PUT } from "../ops.js";
import { Decimal, PlainDate, Timestamp } from "../types.js";
import { ReaderCode } from "./reader.js";
import * as values from "./values.js";
import { WriterCode } from "./writer.js";

const SCOPE = {
  ...values,
  Buffer,
  Decimal,
  PlainDate,
  Timestamp,
  // The mark that some files begin with is text here.
  utf8: new TextDecoder("utf-8", { ignoreBOM: true }),
};

const made = new Map();

/** The codec of a schema in DDL. `bigint`: what a BIGINT is read as, "number" or "bigint". */
export function codecOf(ddl, bigint) {
  const name = `${bigint} ${ddl}`;
  let codec = made.get(name);
  if (codec === undefined) {
    codec = new Codec(parseSchema(ddl), bigint);
    made.set(name, codec);
  }
  return codec;
}

/** Reads and writes the rows of one schema. Places are words of a Buffer. */
export class Codec {
  #bigint;

  constructor(schema, bigint) {
    this.schema = schema;
    this.#bigint = bigint;

    const writer = new WriterCode({ keyed: false });
    const putValue = writer.op(schema, VALUE_PUT, { hasVariable: true });
    const emit = writer.op(schema, EMIT, { hasVariable: false });
    const write = writer.row(schema);
    const writers = compiled(writer.functions, { putValue, emit, write });
    /** (buffer, variable, group, row): adds an op that puts the row into a value state. */
    this.putValue = writers.putValue;
    /** (buffer, group, row): adds an op that emits the row. */
    this.emit = writers.emit;
    /** (buffer, at, row) => end. Where it throws, the buffer has to be wiped from there. */
    this.write = writers.write;

    const reader = new ReaderCode({ bigint });
    const read = reader.row(schema);
    const rows = reader.rows(schema);
    const readers = compiled(reader.functions, { read, rows });
    /** (buffer, at) => row */
    this.read = readers.read;
    /** (buffer, at, count) => rows, that have their lengths before them */
    this.readAll = readers.rows;
  }

  /** The codec of the same rows as state holds them: a column may be NULL that was added later. */
  stored() {
    const columns = this.schema.columns.map((column) => ({ ...column, nullable: true }));
    const { read, readAll } = new Codec({ ...this.schema, columns }, this.#bigint);
    return Object.assign(Object.create(this), { read, readAll });
  }

  /** As `write`, for rows that are compared by their bytes. Made when it is first used. */
  get writeKey() {
    const writer = new WriterCode({ keyed: true });
    const row = writer.row(this.schema);
    const { row: writeKey } = compiled(writer.functions, { row });
    Object.defineProperty(this, "writeKey", { value: writeKey });
    return writeKey;
  }
}

function compiled(functions, wanted) {
  const result = Object.entries(wanted).map(([name, made]) => `${name}: ${made}`).join(", ");
  return new Function(...Object.keys(SCOPE), `"use strict"; ${functions.join("\n")}\nreturn { ${result} };`)(...Object.values(SCOPE));
}
