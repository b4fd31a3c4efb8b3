import assert from "node:assert/strict";
import test from "node:test";

import { Timestamp } from "tidemill";
import { TestQuery } from "tidemill/testing";

import { Heartbeat } from "../src/heartbeat.js";

const MINUTE_MS = 60_000;

test("a sensor is reported once when five minutes have passed", () => {
  const query = new TestQuery(Heartbeat, { timeMode: "processing-time" });
  assert.deepEqual(query.input("s1", [{ celsius: 20 }]).runBatch(), []);
  assert.deepEqual(query.setTimeMs(5 * MINUTE_MS - 1).runBatch(), []);
  const silent = { sensor: "s1", last_seen: Timestamp.fromMs(0), celsius: 20 };
  assert.deepEqual(query.setTimeMs(5 * MINUTE_MS).runBatch(), [silent]);
  assert.deepEqual(query.setTimeMs(60 * MINUTE_MS).runBatch(), []);
});

test("every reading moves the timer", () => {
  const query = new TestQuery(Heartbeat, { timeMode: "processing-time" });
  for (const minute of [0, 4, 8]) {
    assert.deepEqual(query.setTimeMs(minute * MINUTE_MS).input("s1", [{ celsius: minute }]).runBatch(), []);
  }
  assert.deepEqual(query.timers("s1"), [13 * MINUTE_MS]);
});
