import assert from "node:assert/strict";
import test from "node:test";

import { TestQuery } from "tidemill/testing";

import { Dedup } from "../src/dedup.js";

const MINUTE_MS = 60_000;

const event = (body: string) => ({ id: "e1", body });

test("an event passes once an hour", () => {
  const query = new TestQuery(Dedup, { timeMode: "processing-time" });
  assert.deepEqual(query.input("e1", [event("first"), event("again")]).runBatch(), [event("first")]);
  assert.deepEqual(query.setTimeMs(60 * MINUTE_MS - 1).input("e1", [event("late")]).runBatch(), []);
  assert.deepEqual(query.setTimeMs(60 * MINUTE_MS).input("e1", [event("new")]).runBatch(), [event("new")]);
});
