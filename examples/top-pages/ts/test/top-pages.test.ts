import assert from "node:assert/strict";
import test from "node:test";

import { PlainDate } from "tidemill";
import { TestQuery } from "tidemill/testing";

import { TopPages } from "../src/top-pages.js";

const DAY_MS = 24 * 60 * 60 * 1000;
const key = { site: "shop", day: new PlainDate(0) };

const queryOf = (parameters = {}) => new TestQuery(TopPages, { timeMode: "event-time", parameters });
const views = (...pages: string[]) => pages.map((page) => ({ page }));
const change = (rank: number, page: string, views: number, before: string | null) => ({ ...key, rank, page, views, before });

test("pages are ranked by views, those with as many by name", () => {
  const query = queryOf().input(key, views("/b", "/a", "/c", "/c", "/d"));
  assert.deepEqual(query.runBatch(), [change(1, "/c", 2, null), change(2, "/a", 1, null), change(3, "/b", 1, null)]);
});

test("only ranks that another page takes are emitted", () => {
  const query = queryOf();
  query.input(key, views("/a", "/a", "/a", "/b", "/b", "/c")).runBatch();
  assert.deepEqual(query.input(key, views("/a", "/b")).runBatch(), []);
  assert.deepEqual(query.input(key, views("/c", "/c", "/c")).runBatch(), [change(2, "/c", 4, "/b"), change(3, "/b", 3, "/c")]);
});

test("a page that was never in the ranking enters it by all of its views", () => {
  const query = queryOf({ top: "1" });
  query.input(key, views("/a", "/a", "/b")).runBatch();
  assert.deepEqual(query.input(key, views("/b", "/b")).runBatch(), [change(1, "/b", 3, "/a")]);
});

test("a day that is over is forgotten", () => {
  const query = queryOf();
  query.input(key, views("/a")).runBatch();
  query.setWatermarkMs(DAY_MS - 1).runBatch();
  assert.equal(query.map("views", key, "STRING", "BIGINT").length, 1);
  query.setWatermarkMs(DAY_MS).runBatch();
  assert.equal(query.map("views", key, "STRING", "BIGINT").length, 0);
  assert.deepEqual(query.timers(key), []);
});
