// The packed rows of `wit/vectors`: every case, in both directions, and what is no row of its schema.
//
// `invalid` is left out: that is what a host refuses and never sends.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";

import { Decimal, PlainDate, Timestamp } from "../index.js";
import { Buffer } from "../src/buffer.js";
import { codecOf } from "../src/codec/codec.js";

const text = readFileSync(new URL("../../../wit/vectors/packed-rows.json", import.meta.url), "utf8");
// Integers beyond 2^53 become texts, before `JSON.parse` rounds them.
const vectors = JSON.parse(text.replaceAll(/([:[,]\s*)(-?\d{16,})(?=\s*[,}\]])/g, '$1"$2"'));

for (const { name, schema, row, hex, also = [] } of vectors.valid) {
  test(`packed row: ${name}`, () => {
    const codec = codecOf(schema, "bigint");
    const packed = new Buffer(bytes(hex));
    const value = rowOf(codec.schema.columns, row);

    assert.equal(hexOf(codec.write, value), hex);
    assert.deepEqual(codec.read(packed, 0), value);
    // What `also` leaves out is NULL in JSON; in a row of JavaScript it has to be there.
    for (const other of also) {
      assert.equal(hexOf(codec.write, rowOf(codec.schema.columns, { ...allNull(codec), ...other })), hex);
    }
  });
}

for (const { name, schema, row, hex } of vectors.keys) {
  test(`packed key: ${name}`, () => {
    const codec = codecOf(schema, "number");
    assert.equal(hexOf(codec.writeKey, rowOf(codec.schema.columns, row)), hex);
  });
}

function hexOf(write, row) {
  const buffer = Buffer.ofCapacity(8);
  const end = write(buffer, 0, row);
  return Array.from(buffer.u8.subarray(0, end * 4), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

function bytes(hex) {
  return Uint8Array.from(hex.match(/../g) ?? [], (byte) => Number.parseInt(byte, 16));
}

function allNull(codec) {
  return Object.fromEntries(codec.schema.columns.map(({ name }) => [name, null]));
}

function rowOf(columns, row) {
  return Object.fromEntries(columns.map(({ name, type }) => [name, valueOf(type, row[name] ?? null)]));
}

function valueOf(type, value) {
  if (value === null) return null;
  switch (type.kind) {
    case "bigint": return BigInt(value);
    case "float": return Math.fround(Number(value));
    case "double": return Number(value);
    case "decimal": return Decimal.parse(value).rescale(type.scale);
    case "date": return PlainDate.parse(value);
    case "timestamp": return Timestamp.parse(value);
    case "binary": return Uint8Array.from(atob(value), (character) => character.charCodeAt(0));
    case "array": return value.map((element) => valueOf(type.element, element));
    case "struct": return rowOf(type.columns, value);
    case "map": {
      const entries = Array.isArray(value) ? value : Object.entries(value);
      return new Map(entries.map(([key, entry]) => [valueOf(type.key, key), valueOf(type.value, entry)]));
    }
    default: return value;
  }
}
