import assert from "node:assert/strict";
import test from "node:test";

import { TestQuery } from "tidemill/testing";

import { Counter } from "../src/counter.js";

const input = (...values) => values.map((n) => ({ n }));

test("counts go on from batch to batch", () => {
  const query = new TestQuery(Counter);
  query.input("a", input(1, 2, 1)).input("b", input(7, 7));
  assert.deepEqual(query.runBatch(), [
    { key: "a", count: 3, listed: 3, distinct: 2 },
    { key: "b", count: 2, listed: 2, distinct: 1 },
  ]);
  query.input("a", input(9));
  assert.deepEqual(query.runBatch(), [{ key: "a", count: 4, listed: 4, distinct: 3 }]);
  assert.deepEqual(query.list("seen", "a", "BIGINT"), [1, 2, 1, 9]);
  assert.deepEqual(query.map("times", "a", "BIGINT", "BIGINT"), [[1, 2], [2, 1], [9, 1]]);
});

test("a key with more rows than a chunk is one sequence", () => {
  const query = new TestQuery(Counter).smallChunks(2, 3);
  query.input("a", input(...Array(20).fill(1))).input("b", input(2, 2));
  assert.deepEqual(query.runBatch().map(({ count }) => count), [20, 2]);
});
