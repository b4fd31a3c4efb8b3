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

/** Reads and writes the rows of one schema. Places are words of a Buffer. Each function is made when it is first asked for. */
export class Codec {
  #bigint;

  constructor(schema, bigint) {
    this.schema = schema;
    this.#bigint = bigint;
  }

  /** (buffer, at) => row */
  get read() {
    return this.#keep("read", new ReaderCode({ bigint: this.#bigint }), (code) => code.row(this.schema));
  }

  /** (buffer, at, count) => rows, that have their lengths before them */
  get readAll() {
    return this.#keep("readAll", new ReaderCode({ bigint: this.#bigint }), (code) => code.rows(this.schema));
  }

  /** (buffer, at, row) => end. Where it throws, the buffer has to be wiped from there. */
  get write() {
    return this.#keep("write", new WriterCode({ keyed: false }), (code) => code.row(this.schema));
  }

  /** As `write`, for rows that are compared by their bytes. */
  get writeKey() {
    return this.#keep("writeKey", new WriterCode({ keyed: true }), (code) => code.row(this.schema));
  }

  /** (buffer, variable, group, row): adds an op that puts the row into a value state. */
  get putValue() {
    return this.#keep("putValue", new WriterCode({ keyed: false }), (code) => code.op(this.schema, VALUE_PUT, { hasVariable: true }));
  }

  /** (buffer, group, row): adds an op that emits the row. */
  get emit() {
    return this.#keep("emit", new WriterCode({ keyed: false }), (code) => code.op(this.schema, EMIT, { hasVariable: false }));
  }

  /** The codec of the same rows as state holds them: a column may be NULL that was added later. */
  get stored() {
    const columns = this.schema.columns.map((column) => ({ ...column, nullable: true }));
    return this.#own("stored", new Codec({ ...this.schema, columns }, this.#bigint));
  }

  #keep(name, code, write) {
    const wanted = write(code);
    const source = `"use strict"; ${code.functions.join("\n")}\nreturn ${wanted};`;
    return this.#own(name, new Function(...Object.keys(SCOPE), source)(...Object.values(SCOPE)));
  }

  /** Puts a value in the place of the accessor that made it. */
  #own(name, value) {
    Object.defineProperty(this, name, { value });
    return value;
  }
}
