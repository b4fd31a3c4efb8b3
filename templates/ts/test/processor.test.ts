import assert from "node:assert/strict";
import test from "node:test";

import { TestQuery } from "tidemill/testing";

import { Counter, QUIET_MS } from "../src/processor.ts";

test("visits are counted until half an hour has passed without one", () => {
  const query = new TestQuery(Counter, { timeMode: "processing-time" });
  query.input("ada", [{ page: "/" }, { page: "/prices" }]);
  assert.deepEqual(query.runBatch(), [{ user: "ada", visits: 2, here: true }]);

  query.setTimeMs(QUIET_MS);
  assert.deepEqual(query.runBatch(), [{ user: "ada", visits: 2, here: false }]);
  assert.equal(query.value("visits", "ada", "BIGINT"), undefined);
});
