import assert from "node:assert/strict";
import test from "node:test";

import { Timestamp } from "tidemill";
import { TestQuery } from "tidemill/testing";

import { Sessions } from "../src/sessions.js";

const MINUTE_MS = 60_000;

const minute = (count: number) => Timestamp.fromMs(count * MINUTE_MS);
const events = (...minutes: number[]) => minutes.map((at) => ({ at: minute(at) }));
const session = (first: number, last: number, count: number) => ({
  user: "ann",
  first: minute(first),
  last: minute(last),
  ended: minute(last + 30),
  events: count,
});

test("a session ends when the watermark is half an hour past its last event", () => {
  const query = new TestQuery(Sessions, { timeMode: "event-time" });
  assert.deepEqual(query.input("ann", events(0, 10)).runBatch(), []);
  assert.deepEqual(query.setWatermarkMs(40 * MINUTE_MS - 1).runBatch(), []);
  assert.deepEqual(query.setWatermarkMs(40 * MINUTE_MS).runBatch(), [session(0, 10, 2)]);
  assert.deepEqual(query.timers("ann"), []);
});

test("an event between two sessions joins them", () => {
  const query = new TestQuery(Sessions, { timeMode: "event-time" });
  query.input("ann", events(50, 0)).runBatch();
  assert.deepEqual(query.timers("ann"), [30 * MINUTE_MS, 80 * MINUTE_MS]);
  query.input("ann", events(25)).runBatch();
  assert.deepEqual(query.setWatermarkMs(200 * MINUTE_MS).runBatch(), [session(0, 50, 3)]);
});

test("sessions end one by one", () => {
  const query = new TestQuery(Sessions, { timeMode: "event-time" });
  query.input("ann", events(0, 30, 100)).runBatch();
  assert.deepEqual(query.setWatermarkMs(100 * MINUTE_MS).runBatch(), [session(0, 0, 1), session(30, 30, 1)]);
  assert.deepEqual(query.timers("ann"), [130 * MINUTE_MS]);
});
