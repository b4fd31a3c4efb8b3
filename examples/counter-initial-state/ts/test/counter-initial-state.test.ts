import assert from "node:assert/strict";
import test from "node:test";

import { TestQuery } from "tidemill/testing";

import { Counter } from "../src/counter-initial-state.js";

test("counting begins at the initial state", () => {
  const query = new TestQuery(Counter);
  query.initialState("x", [{ count: 10 }]).initialState("y", [{ count: 5 }]).runInitialState();
  query.input("x", [{ value: "a" }, { value: "b" }]);
  assert.deepEqual(query.runBatch(), [{ id: "x", count: 12 }]);
  assert.equal(query.value("count", "y", "BIGINT"), 5);
});
