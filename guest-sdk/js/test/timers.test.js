// Timers: when they fire, and what their handlers see and change.

import assert from "node:assert/strict";
import test from "node:test";

import { exportProcessor } from "../index.js";
import { TestQuery } from "../testing.js";

/** A query whose input rows register timers at `at`, and whose timers call `fire(timers, expiryMs)`. */
function queryOf(fire = () => "", { bigint = "number", timeMode = "processing-time" } = {}) {
  class Timed {
    handleInputRows(key, rows, timers) {
      for (const { at } of rows) timers.register(at);
    }

    *handleExpiredTimer(key, timers, expiryMs) {
      yield { key, at: expiryMs, seen: String(fire(timers, expiryMs) ?? "") };
    }
  }
  exportProcessor(Timed, { key: "STRING", input: "at BIGINT", output: "key STRING, at BIGINT, seen STRING", bigint });
  return new TestQuery(Timed, { timeMode });
}

const at = (...times) => times.map((time) => ({ at: time }));
const fired = (rows) => rows.map(({ at }) => at);

test("a timer fires once, when its time has come", () => {
  const query = queryOf().input("a", at(10, 20));
  assert.deepEqual(fired(query.setTimeMs(9).runBatch()), []);
  assert.deepEqual(fired(query.setTimeMs(10).runBatch()), [10]);
  assert.deepEqual(query.timers("a"), [20]);
  assert.deepEqual(fired(query.setTimeMs(100).runBatch()), [20]);
  assert.deepEqual(fired(query.setTimeMs(200).runBatch()), []);
});

test("in event time, timers follow the watermark", () => {
  const query = queryOf(undefined, { timeMode: "event-time" }).input("a", at(10));
  assert.deepEqual(fired(query.setTimeMs(1000).runBatch()), []);
  assert.deepEqual(fired(query.setWatermarkMs(10).runBatch()), [10]);
});

test("a timer in the past fires in the batch whose rows register it", () => {
  assert.deepEqual(fired(queryOf().setTimeMs(100).input("a", at(5)).runBatch()), [5]);
});

test("a handler that deletes a later due timer of its group keeps it from firing", () => {
  const query = queryOf((timers, expiryMs) => expiryMs === 10 && timers.delete(20)).input("a", at(10, 20, 30));
  assert.deepEqual(fired(query.setTimeMs(100).runBatch()), [10, 30]);
  assert.deepEqual(query.timers("a"), []);
});

test("the same over chunks of one timer", () => {
  const query = queryOf((timers, expiryMs) => expiryMs === 10 && timers.delete(20)).smallChunks(1, 1).input("a", at(10, 20, 30));
  assert.deepEqual(fired(query.setTimeMs(100).runBatch()), [10, 30]);
});

test("a handler that registers its own expiry again keeps it", () => {
  let again = true;
  const query = queryOf((timers, expiryMs) => again && timers.register(expiryMs)).input("a", at(10));
  assert.deepEqual(fired(query.setTimeMs(10).runBatch()), [10]);
  assert.deepEqual(query.timers("a"), [10]);
  again = false;
  assert.deepEqual(fired(query.runBatch()), [10]);
  assert.deepEqual(query.timers("a"), []);
});

test("while a timer fires it is in the list, unless its handler deletes it", () => {
  const list = (timers, expiryMs) => {
    const before = timers.list().join();
    timers.register(15);
    const registered = timers.list().join();
    timers.delete(expiryMs);
    return `${before} | ${registered} | ${timers.list().join()}`;
  };
  const query = queryOf(list).input("a", at(10, 20));
  assert.deepEqual(query.setTimeMs(10).runBatch(), [{ key: "a", at: 10, seen: "10,20 | 10,15,20 | 15,20" }]);
});

test("many timers are listed over several pages", () => {
  const query = queryOf((timers) => timers.list().length).smallChunks(1, 2).input("a", at(...Array.from({ length: 9 }, (_, n) => n)));
  assert.deepEqual(query.setTimeMs(0).runBatch().map(({ seen }) => seen), ["9"]);
});

test("without a time mode there are no timers", () => {
  assert.throws(() => queryOf(undefined, { timeMode: "none" }).input("a", at(1)).runBatch(), {
    code: "STATEFUL_PROCESSOR_CANNOT_PERFORM_OPERATION_WITH_INVALID_TIME_MODE",
  });
});

test("what is no time in whole milliseconds is refused", () => {
  const code = "NUMERIC_VALUE_OUT_OF_RANGE";
  for (const time of [0.5, Number.NaN, 2 ** 53, 2n ** 63n, "10"]) {
    const query = queryOf((timers) => timers.register(time)).input("a", at(1));
    assert.throws(() => query.setTimeMs(1).runBatch(), { code });
  }
});

test("a time beyond 2^53 is a bigint in bigint mode, and an error in number mode", () => {
  const never = 2n ** 63n - 1n;
  const bigints = queryOf((timers) => timers.list().join(), { bigint: "bigint" }).input("a", [{ at: 10n }, { at: never }]);
  assert.deepEqual(bigints.setTimeMs(10).runBatch(), [{ key: "a", at: 10n, seen: `10,${never}` }]);
  const numbers = queryOf((timers) => timers.register(never) ?? timers.list()).input("a", at(10));
  assert.throws(() => numbers.setTimeMs(10).runBatch(), { code: "NUMERIC_VALUE_OUT_OF_RANGE" });
});
