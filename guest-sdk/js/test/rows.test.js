// Values as they are checked where they are written: every type takes its own and refuses the rest.

import assert from "node:assert/strict";
import test from "node:test";

import { Decimal, PlainDate, Timestamp } from "../index.js";
import { Buffer } from "../src/buffer.js";
import { codecOf } from "../src/codec/codec.js";

/** What is read back of a value. */
function back(type, value, bigint = "number") {
  const codec = codecOf(`x ${type}`, bigint);
  const buffer = Buffer.ofCapacity(8);
  codec.write(buffer, 0, { x: value });
  return codec.read(buffer, 0).x;
}

const code = (type, value) => {
  try {
    return back(type, value);
  } catch (error) {
    return error.code;
  }
};

const OUT_OF_RANGE = "NUMERIC_VALUE_OUT_OF_RANGE";
const NULL_VALUE = "ILLEGAL_STATE_STORE_VALUE.NULL_VALUE";

test("integers are whole numbers of their range", () => {
  for (const [type, bits] of [["TINYINT", 8], ["SMALLINT", 16], ["INT", 32]]) {
    const limit = 2 ** (bits - 1);
    for (const value of [-limit, -1, 0, limit - 1]) assert.equal(back(type, value), value);
    for (const value of [-limit - 1, limit, 1n]) assert.equal(code(type, value), OUT_OF_RANGE);
    for (const value of [0.5, Number.NaN, Infinity, "1", true, undefined]) assert.equal(code(type, value), "INVALID_ROW");
  }
});

test("a BIGINT is a number or a bigint, where exact", () => {
  for (const value of [0, -1, 2 ** 31, -(2 ** 31) - 1, 2 ** 53 - 1, -(2 ** 53) + 1]) assert.equal(back("BIGINT", value), value);
  assert.equal(back("BIGINT", 5n), 5);
  assert.equal(back("BIGINT", 5, "bigint"), 5n);
  assert.equal(back("BIGINT", -(2n ** 63n), "bigint"), -(2n ** 63n));
  for (const value of [2 ** 53, -(2 ** 53), 2n ** 53n, 2n ** 63n]) assert.equal(code("BIGINT", value), OUT_OF_RANGE);
  for (const value of [0.5, Number.NaN, "1", new Date(0), undefined]) assert.equal(code("BIGINT", value), "INVALID_ROW");
});

test("a FLOAT is the nearest of 32 bits, and a finite number does not become infinite", () => {
  assert.equal(back("FLOAT", 0.1), Math.fround(0.1));
  assert.equal(back("FLOAT", -Infinity), -Infinity);
  assert.equal(code("FLOAT", 1e39), OUT_OF_RANGE);
  for (const type of ["FLOAT", "DOUBLE"]) {
    assert.ok(Number.isNaN(back(type, Number.NaN)));
    assert.ok(Object.is(back(type, -0), -0));
    assert.equal(code(type, 1n), "INVALID_ROW");
  }
});

test("a DECIMAL is a Decimal of no more digits", () => {
  for (const type of ["DECIMAL(5,2)", "DECIMAL(25,2)"]) {
    assert.deepEqual(back(type, Decimal.parse("-1.5")), Decimal.parse("-1.50"));
    assert.equal(code(type, Decimal.parse("0.001")), OUT_OF_RANGE);
    for (const value of [1.5, "1.50", undefined]) assert.equal(code(type, value), "INVALID_ROW");
  }
  assert.equal(code("DECIMAL(5,2)", Decimal.parse("1000")), OUT_OF_RANGE);
});

test("a TIMESTAMP is a Timestamp or a Date", () => {
  assert.deepEqual(back("TIMESTAMP", new Date(5)), Timestamp.fromMs(5));
  for (const value of [5, "1970-01-01T00:00:00Z", new Date(Number.NaN), new PlainDate(0), undefined]) assert.equal(code("TIMESTAMP", value), "INVALID_ROW");
});

test("other types take their own values only", () => {
  const wrong = {
    BOOLEAN: [0, "true", undefined],
    STRING: [1, ["a"], undefined, "half \udc00"],
    BINARY: ["a", [1], new Uint16Array(1), undefined],
    DATE: [0, "1970-01-01", new Date(0), undefined],
    "ARRAY<INT>": [1, "12", new Set([1]), undefined],
    "MAP<STRING, INT>": [{ a: 1 }, [["a", 1]], undefined],
    "STRUCT<a: INT>": [1, "a", { b: 1 }, undefined],
  };
  for (const [type, values] of Object.entries(wrong)) {
    for (const value of values) assert.equal(code(type, value), "INVALID_ROW", `${type}: ${String(value)}`);
  }
});

test("null is for columns that have it", () => {
  for (const type of ["BOOLEAN", "INT", "BIGINT", "DOUBLE", "DECIMAL(5,2)", "DECIMAL(25,2)", "STRING", "BINARY", "DATE", "TIMESTAMP", "ARRAY<INT>", "MAP<INT, INT>", "STRUCT<a: INT>"]) {
    assert.equal(back(type, null), null);
    assert.equal(code(`${type} NOT NULL`, null), NULL_VALUE);
  }
});

test("an error in a nested value names the way to it", () => {
  const codec = codecOf("a STRUCT<b: ARRAY<STRUCT<c: INT NOT NULL>>>, m MAP<STRING, INT>", "number");
  const write = (row) => () => codec.write(Buffer.ofCapacity(8), 0, row);
  assert.throws(write({ a: { b: [{ c: 1 }, { c: "x" }] }, m: null }), { message: 'column `a.b[].c`: the text "x" is no INT' });
  assert.throws(write({ a: { b: [{ c: null }] }, m: null }), { code: NULL_VALUE, message: /`a\.b\[\]\.c` is null/ });
  assert.throws(write({ a: null, m: new Map([[null, 1]]) }), { code: NULL_VALUE, message: /`m`: the key of a MAP is null/ });
  assert.throws(write({ a: null, m: new Map([["k", "v"]]) }), { message: /`m value\[\]`/ });
});

test("keys of a MAP that are equal rows are refused", () => {
  const map = new Map([[{ a: 1 }, "x"], [{ a: 1 }, "y"]]);
  assert.throws(() => back("MAP<STRUCT<a: INT>, STRING>", map), { code: "INVALID_ROW", message: /two keys of the MAP are equal/ });
});

test("columns whose names mean something in JavaScript are columns like any other", () => {
  const codec = codecOf("`__proto__` INT, constructor STRING, `a-b` INT, class INT", "number");
  const row = JSON.parse('{ "__proto__": 1, "constructor": "c", "a-b": 2, "class": 3 }');
  const buffer = Buffer.ofCapacity(8);
  codec.write(buffer, 0, row);
  assert.equal(JSON.stringify(codec.read(buffer, 0)), JSON.stringify(row));
});

test("columns of state that were added later are null in older rows", () => {
  const codec = codecOf("a INT NOT NULL", "number").stored;
  const buffer = Buffer.ofCapacity(8);
  codecOf("a INT", "number").write(buffer, 0, { a: null });
  assert.deepEqual(codec.read(buffer, 0), { a: null });
});

test("a row that is refused leaves nothing behind", () => {
  const codec = codecOf("a STRING, n BIGINT", "number");
  const ops = Buffer.ofCapacity(8);
  assert.throws(() => codec.emit(ops, 1, { a: "x".repeat(100), n: "y" }));
  codec.emit(ops, 1, { a: null, n: null });
  assert.deepEqual([...ops.written().subarray(16)], [3, ...Array(23).fill(0)]);
});
