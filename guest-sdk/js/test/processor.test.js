// Handlers: rows, output, errors, `init` and `close`.

import assert from "node:assert/strict";
import test from "node:test";

import { exportProcessor, log, ProcessorError, Timestamp } from "../index.js";
import { TestQuery } from "../testing.js";

const OPTIONS = { key: "STRING", input: "n BIGINT", output: "key STRING NOT NULL, n BIGINT" };

/** A query of a class with these methods. */
function queryOf(methods, options = OPTIONS, query = {}) {
  class Processor {}
  Object.assign(Processor.prototype, { handleInputRows() {} }, methods);
  exportProcessor(Processor, options);
  return new TestQuery(Processor, query);
}

/** The error of a batch of the key "a" with the row n = 1. */
function failureOf(methods, options, query) {
  try {
    queryOf(methods, options, query).input("a", [{ n: 1 }]).runBatch();
  } catch (error) {
    return error;
  }
  return assert.fail("the batch did not fail");
}

test("rows that a generator yields and rows of an array are emitted in order", () => {
  const rows = [{ key: "a", n: 1 }, { key: "a", n: null }];
  assert.deepEqual(queryOf({ *handleInputRows() { yield* rows; } }).input("a", [{ n: 1 }]).runBatch(), rows);
  assert.deepEqual(queryOf({ handleInputRows: () => rows }).input("a", [{ n: 1 }]).runBatch(), rows);
  assert.deepEqual(queryOf({ handleInputRows: () => new Set(rows) }).input("a", [{ n: 1 }]).runBatch(), rows);
  assert.deepEqual(queryOf({ handleInputRows() {} }).input("a", [{ n: 1 }]).runBatch(), []);
});

test("a group whose rows span three chunks arrives as one sequence", () => {
  const query = queryOf({
    *handleInputRows(key, rows) {
      let sum = 0;
      for (const { n } of rows) sum = sum * 10 + n;
      yield { key, n: sum };
    },
  });
  query.smallChunks(2, 3).input("a", [1, 2, 3, 4, 5, 6, 7, 8].map((n) => ({ n }))).input("b", [{ n: 9 }]);
  assert.deepEqual(query.runBatch(), [{ key: "a", n: 12_345_678 }, { key: "b", n: 9 }]);
});

test("a handler that reads only its first row does not disturb the next group", () => {
  const query = queryOf({
    *handleInputRows(key, rows) {
      for (const { n } of rows) {
        yield { key, n };
        break;
      }
    },
  });
  query.smallChunks(2, 3).input("a", Array.from({ length: 10 }, (_, n) => ({ n }))).input("b", [{ n: 20 }, { n: 21 }]);
  assert.deepEqual(query.runBatch(), [{ key: "a", n: 0 }, { key: "b", n: 20 }]);
});

test("rows of a group that is over are over, whoever still holds them", () => {
  let kept;
  const query = queryOf({
    *handleInputRows(key, rows) {
      if (kept !== undefined) yield { key, n: [...kept].length };
      kept = rows;
    },
  });
  query.smallChunks(1, 2).input("a", [1, 2, 3].map((n) => ({ n }))).input("b", [{ n: 4 }]);
  assert.deepEqual(query.runBatch(), [{ key: "b", n: 0 }]);
});

test("a key of several columns is an object, and NULL is null", () => {
  const query = queryOf(
    { handleInputRows: (key) => [{ key: JSON.stringify(key), n: null }] },
    { input: "n BIGINT", output: OPTIONS.output },
    { key: "a STRING, b INT" },
  );
  query.input({ a: "x", b: null }, [{ n: 1 }]).input({ a: null, b: 2 }, [{ n: 1 }]);
  const keys = query.runBatch().map(({ key }) => JSON.parse(key));
  assert.deepEqual(keys.sort((left) => (left.a === null ? -1 : 1)), [{ a: null, b: 2 }, { a: "x", b: null }]);
});

test("the plan has the columns that are wanted, single types by the names of the query", () => {
  const whole = queryOf({}, { output: "STRING" }, { key: "k STRING", input: "k STRING, n BIGINT" });
  assert.deepEqual(whole.plan(), { output: "value STRING", columns: undefined, initialState: undefined, key: undefined, prefetch: undefined });
  const some = queryOf({}, { key: "STRING NOT NULL", input: "n BIGINT NOT NULL, `a b` ARRAY<INT>", output: "x DECIMAL(10, 2)" });
  assert.deepEqual(some.plan(), { output: "x DECIMAL(10,2)", columns: "n BIGINT NOT NULL, `a b` ARRAY<INT>", initialState: undefined, key: "value STRING NOT NULL", prefetch: undefined });
});

test("an error in a handler has its message, and the line of the author in its cause", () => {
  const error = failureOf({ handleInputRows: () => [].missing.property });
  assert.equal(error.code, "USER_CODE");
  assert.match(error.message, /^TypeError: .*property/);
  assert.match(error.cause.stack, /processor\.test\.js/);
});

test("an error with a code of the author's own keeps it", () => {
  const error = failureOf({ handleInputRows() { throw new ProcessorError("OVERDRAWN", "no money left"); } });
  assert.deepEqual([error.code, error.message], ["OVERDRAWN", "no money left"]);
});

test("what is thrown and is no error is told", () => {
  const error = failureOf({ handleInputRows() { throw "nothing"; } });
  assert.equal(error.code, "USER_CODE");
  assert.match(error.message, /the text "nothing" was thrown/);
});

for (const handler of ["init", "handleInputRows", "close"]) {
  test(`an error in ${handler} fails the batch, which has no effect`, () => {
    let fails = true;
    const query = queryOf({
      init(handle) {
        this.count = handle.valueState("count", "BIGINT");
        if (fails && handler === "init") throw new Error("on purpose");
      },
      *handleInputRows(key) {
        this.count.update((this.count.get() ?? 0) + 1);
        yield { key, n: this.count.get() };
        if (fails && handler === "handleInputRows") throw new Error("on purpose");
      },
      close() {
        if (fails && handler === "close") throw new Error("on purpose");
      },
    });
    assert.throws(() => query.input("a", [{ n: 1 }]).runBatch(), { code: "USER_CODE", message: "Error: on purpose" });
    fails = false;
    assert.deepEqual(query.input("a", [{ n: 1 }]).runBatch(), [{ key: "a", n: 1 }]);
  });
}

test("state is out of reach in init and close, and is made in init only", () => {
  const invalid = "STATEFUL_PROCESSOR_CANNOT_PERFORM_OPERATION_WITH_INVALID_HANDLE_STATE";
  const withState = (use) => ({ init(handle) { this.handle = handle; this.count = handle.valueState("count", "BIGINT"); use.init?.(this); }, close() { use.close?.(this); }, handleInputRows() { use.rows?.(this); } });
  for (const use of [({ count }) => count.get(), ({ count }) => count.update(1), ({ count }) => count.exists(), ({ count }) => count.clear()]) {
    assert.equal(failureOf(withState({ init: use })).code, invalid);
    assert.equal(failureOf(withState({ close: use })).code, invalid);
  }
  assert.equal(failureOf(withState({ rows: ({ handle }) => handle.valueState("late", "BIGINT") })).code, invalid);
});

test("names of variables are checked", () => {
  const codeOf = (init) => failureOf({ init }).code;
  assert.equal(codeOf((handle) => [handle.valueState("a", "INT"), handle.listState("a", "INT")]), "STATEFUL_PROCESSOR_DUPLICATE_STATE_VARIABLE_DEFINED");
  assert.equal(codeOf((handle) => void handle.valueState("$a", "INT")), "STATE_STORE_CANNOT_CREATE_COLUMN_FAMILY_WITH_RESERVED_CHARS");
  assert.equal(codeOf((handle) => void handle.valueState("a", "n BIGINTT")), "INVALID_SCHEMA");
  assert.equal(codeOf((handle) => void handle.valueState("a", "INT", { ttlMs: 0.5 })), "STATEFUL_PROCESSOR_TTL_DURATION_MUST_BE_POSITIVE");
});

test("what is no row, and what is no value of its column, is told with the column", () => {
  const emitting = (row) => {
    const { code, message } = failureOf({ handleInputRows: () => [row] });
    return [code, message];
  };
  assert.deepEqual(emitting({ key: 1, n: 1 }), ["INVALID_ROW", "column `key`: 1 is no STRING"]);
  assert.deepEqual(emitting({ key: "a" }), ["INVALID_ROW", "column `n` is missing; where it has no value, give null"]);
  assert.deepEqual(emitting({ key: null, n: 1 }), ["ILLEGAL_STATE_STORE_VALUE.NULL_VALUE", "column `key` is null, which its type has not"]);
  assert.deepEqual(emitting("a row"), ["INVALID_ROW", 'a row is an object of its columns, not the text "a row"']);
  assert.equal(emitting({ key: "\ud800", n: 1 })[0], "INVALID_ROW");
});

test("a handler that answers no rows is told what it may answer", () => {
  assert.equal(failureOf({ handleInputRows: () => 5 }).code, "INVALID_OUTPUT");
  assert.match(failureOf({ async handleInputRows() {} }).message, /a promise: handlers are not async/);
  assert.match(failureOf({ *init() {} }).message, /init emits no rows/);
  assert.match(failureOf({ async close() {} }).message, /a promise/);
});

test("the finally of a generator runs when its row is refused", () => {
  let cleaned = false;
  failureOf({ *handleInputRows() { try { yield {}; } finally { cleaned = true; } } });
  assert.equal(cleaned, true);
});

test("a BIGINT beyond 2^53 is an error in number mode and a bigint in bigint mode", () => {
  const large = 2n ** 53n;
  const methods = { handleInputRows: (key, [{ n }]) => [{ key, n }] };
  const numbers = queryOf(methods);
  assert.throws(() => numbers.input("a", [{ n: large }]).runBatch(), { code: "NUMERIC_VALUE_OUT_OF_RANGE", message: /column `n`: 9007199254740992 is beyond/ });
  const safe = [2 ** 53 - 1, -(2 ** 53 - 1), 2 ** 32, -(2 ** 32), -1, 0];
  assert.deepEqual(safe.map((n) => numbers.input("a", [{ n }]).runBatch()[0].n), safe);
  const bigints = queryOf(methods, { ...OPTIONS, bigint: "bigint" });
  assert.deepEqual([large, -(2n ** 63n), 1n].map((n) => bigints.input("a", [{ n }]).runBatch()[0].n), [large, -(2n ** 63n), 1n]);
  assert.throws(() => bigints.input("a", [{ n: 2n ** 63n }]), { code: "NUMERIC_VALUE_OUT_OF_RANGE" });
});

test("a processor sees its query and the time of the batch", () => {
  const query = queryOf(
    {
      init(handle) {
        this.text = [handle.parameter("unit"), String(handle.parameter("absent")), handle.query.timeMode, handle.query.batchId].join(" ");
      },
      handleInputRows(key, rows, timers) {
        return [{ key: this.text, n: timers.processingTimeMs }];
      },
    },
    OPTIONS,
    { timeMode: "processing-time", parameters: { unit: "kW" } },
  );
  assert.deepEqual(query.setTimeMs(5).input("a", [{ n: 1 }]).runBatch(), [{ key: "kW undefined processing-time 1", n: 5 }]);
});

test("every batch has an instance of its own", () => {
  const query = queryOf({ handleInputRows(key) { this.calls = (this.calls ?? 0) + 1; return [{ key, n: this.calls }]; } });
  for (let batch = 0; batch < 2; batch += 1) assert.deepEqual(query.input("a", [{ n: 1 }]).runBatch(), [{ key: "a", n: 1 }]);
});

test("the initial state is read once, and its timers fire later", () => {
  const query = queryOf(
    {
      init(handle) {
        this.count = handle.valueState("count", "BIGINT");
      },
      handleInitialState(key, { start }, timers) {
        this.count.update(start);
        timers.register(0);
      },
      handleInputRows(key) {
        return [{ key, n: this.count.get() }];
      },
      handleExpiredTimer: (key) => [{ key, n: -1 }],
    },
    { ...OPTIONS, initialState: "start BIGINT" },
    { timeMode: "processing-time" },
  );
  query.initialState("a", [{ start: 10 }]).runInitialState();
  assert.deepEqual(query.input("a", [{ n: 1 }]).runBatch(), [{ key: "a", n: 10 }, { key: "a", n: -1 }]);
});

test("an initial state that the processor does not take is refused", () => {
  const query = queryOf({}, { ...OPTIONS, initialState: "start BIGINT" });
  assert.throws(() => query.initialState("a", [{ start: 1 }]).runInitialState(), { code: "INITIAL_STATE_NOT_HANDLED" });
});

test("messages are logged with their level", () => {
  const query = queryOf({ handleInputRows(key) { log.info("key", key, { n: 1n, at: Timestamp.fromMs(0) }); log.warn("odd"); } });
  query.input("a", [{ n: 1 }]).runBatch();
  assert.deepEqual(query.takeLog(), [
    { level: "info", message: 'key a {"n":"1","at":"1970-01-01T00:00:00Z"}' },
    { level: "warn", message: "odd" },
  ]);
});

test("what cannot be a processor is refused when it is exported", () => {
  const refused = (Processor, options) => assert.throws(() => exportProcessor(Processor, options), { code: /INVALID_PROCESSOR|INVALID_SCHEMA/ });
  class Whole { handleInputRows() {} }
  refused(class {}, OPTIONS);
  refused(Whole, {});
  refused(Whole, { output: "n BIGINTT" });
  refused(Whole, { ...OPTIONS, bigint: "float" });
  refused(Whole, { ...OPTIONS, outptu: "n BIGINT" });
});
