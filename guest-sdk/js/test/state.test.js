// Value, list and map state: what a handler reads of what it wrote before.

import assert from "node:assert/strict";
import test from "node:test";

import { exportProcessor } from "../index.js";
import { TestQuery } from "../testing.js";

/** A processor whose handler is `steps(state, key, rows)`, with a state of each kind. */
function processor(steps, options = {}) {
  class Steps {
    init(handle) {
      this.list = handle.listState("list", "STRING", options);
      this.value = handle.valueState("value", "n BIGINT", options);
      this.map = handle.mapState("map", "STRING", "BIGINT", options);
      this.other = handle.valueState("other", "STRING", options);
      this.wide = handle.mapState("wide", "a STRING, b DOUBLE", "STRING", options);
    }

    handleInputRows(key, rows) {
      return steps(this, key, rows);
    }
  }
  exportProcessor(Steps, { key: "STRING", input: "n BIGINT", output: "seen STRING" });
  return Steps;
}

/** What the handler saw, of one key with one row in one batch after another. */
function seen(steps, { batches = 1, query = {} } = {}) {
  const run = new TestQuery(processor((state, key, rows) => [{ seen: JSON.stringify(steps(state, key, rows) ?? null) }]), query);
  return Array.from({ length: batches }, () => JSON.parse(run.input("a", [{ n: 1 }]).runBatch()[0].seen));
}

test("a value that was never written is undefined, and does not exist", () => {
  assert.deepEqual(seen(({ value }) => [value.get() === undefined, value.exists()]), [[true, false]]);
});

test("a value is read after update, after clear, and in the next batch", () => {
  const steps = ({ value }) => {
    const before = value.get()?.n;
    value.update({ n: (before ?? 0) + 1 });
    const updated = [value.get(), value.exists()];
    value.clear();
    const cleared = [value.get() ?? "absent", value.exists()];
    value.update({ n: (before ?? 0) + 1 });
    return { before: before ?? "absent", updated, cleared };
  };
  assert.deepEqual(seen(steps, { batches: 2 }), [
    { before: "absent", updated: [{ n: 1 }, true], cleared: ["absent", false] },
    { before: 1, updated: [{ n: 2 }, true], cleared: ["absent", false] },
  ]);
});

test("a value is as it was written, whatever becomes of the object", () => {
  const steps = ({ value }) => {
    const row = { n: 1 };
    value.update(row);
    row.n = 2;
    return value.get();
  };
  assert.deepEqual(seen(steps), [{ n: 1 }]);
});

test("a column of NULL is null, which is not an absent value", () => {
  assert.deepEqual(seen(({ value }) => (value.update({ n: null }), [value.get(), value.exists()])), [[{ n: null }, true]]);
});

test("a value is still there after more than 64 KiB of other writes", () => {
  const steps = ({ value, other, list }) => {
    value.update({ n: 7 });
    for (let at = 0; at < 2000; at += 1) list.append("x".repeat(64));
    other.update("y".repeat(100_000));
    return [value.get(), value.exists(), other.get().length];
  };
  assert.deepEqual(seen(steps), [[{ n: 7 }, true, 100_000]]);
});

test("what a value state is given is checked where it is written", () => {
  const codeOf = (write) => seen(({ value, other, list, map }) => {
    try {
      write({ value, other, list, map });
      return "no error";
    } catch (error) {
      return [error.code, value.get() ?? "absent"];
    }
  })[0];
  assert.deepEqual(codeOf(({ value }) => value.update({ n: "1" })), ["INVALID_ROW", "absent"]);
  assert.deepEqual(codeOf(({ value }) => value.update({})), ["INVALID_ROW", "absent"]);
  assert.deepEqual(codeOf(({ value }) => value.update({ n: 2 ** 53 })), ["NUMERIC_VALUE_OUT_OF_RANGE", "absent"]);
  assert.deepEqual(codeOf(({ value }) => value.update(null)), ["ILLEGAL_STATE_STORE_VALUE.NULL_VALUE", "absent"]);
  assert.deepEqual(codeOf(({ list }) => list.append(null)), ["ILLEGAL_STATE_STORE_VALUE.NULL_VALUE", "absent"]);
  assert.deepEqual(codeOf(({ list }) => list.put([])), ["ILLEGAL_STATE_STORE_VALUE.EMPTY_LIST_VALUE", "absent"]);
  assert.deepEqual(codeOf(({ list }) => list.appendAll([])), ["ILLEGAL_STATE_STORE_VALUE.EMPTY_LIST_VALUE", "absent"]);
  assert.deepEqual(codeOf(({ map }) => map.set(null, 1)), ["ILLEGAL_STATE_STORE_VALUE.NULL_VALUE", "absent"]);
  assert.deepEqual(codeOf(({ map }) => map.set("k", undefined)), ["ILLEGAL_STATE_STORE_VALUE.NULL_VALUE", "absent"]);
  assert.deepEqual(codeOf(({ map }) => map.get(1)), ["INVALID_ROW", "absent"]);
});

test("a list keeps its order over append, put and clear", () => {
  const steps = ({ list }) => {
    const seen = [list.exists(), list.get()];
    list.append("a");
    list.appendAll(["b", "c"]);
    seen.push(list.get(), list.exists());
    list.put(["d"]);
    list.append("e");
    seen.push([...list]);
    list.clear();
    seen.push(list.get(), list.exists());
    return seen;
  };
  assert.deepEqual(seen(steps), [[false, [], ["a", "b", "c"], true, ["d", "e"], [], false]]);
});

test("a list put of more than 64 KiB reads back whole and in order", () => {
  const elements = Array.from({ length: 5000 }, (_, at) => `element ${at} ${"x".repeat(40)}`);
  const steps = ({ list }) => {
    list.append("before");
    list.put(elements);
    return list.get();
  };
  assert.deepEqual(seen(steps), [elements]);
});

test("a list that is read page by page shows what was there when the read began", () => {
  const query = new TestQuery(
    processor(({ list }) => {
      list.put(["a", "b", "c", "d", "e"]);
      const read = [];
      for (const element of list) {
        read.push(element);
        list.append(`${element}!`);
      }
      return [{ seen: read.join("") }, { seen: list.get().join("") }];
    }),
  );
  query.smallChunks(1, 2).input("a", [{ n: 1 }]);
  assert.deepEqual(query.runBatch(), [{ seen: "abcde" }, { seen: "abcdea!b!c!d!e!" }]);
});

test("a map is read after pending set, delete and clear, and iteration sees them", () => {
  const steps = ({ map }) => {
    const seen = [map.get("x") ?? "absent", map.has("x"), map.exists()];
    map.set("x", 1);
    map.set("y", 2);
    seen.push(map.get("x"), map.has("y"));
    map.delete("x");
    seen.push(map.get("x") ?? "absent", map.has("x"), [...map]);
    map.clear();
    seen.push(map.get("y") ?? "absent", map.has("y"), [...map.keys()], map.exists());
    map.set("z", 3);
    seen.push(map.get("z"), map.get("y") ?? "absent", [...map.values()], [...map.entries()]);
    return seen;
  };
  assert.deepEqual(seen(steps), [
    ["absent", false, false, 1, true, "absent", false, [["y", 2]], "absent", false, [], false, 3, "absent", [3], [["z", 3]]],
  ]);
});

test("counting in a map goes on in the next batch", () => {
  const steps = ({ map }) => {
    for (const word of ["a", "b", "a"]) map.set(word, (map.get(word) ?? 0) + 1);
    return [...map];
  };
  assert.deepEqual(seen(steps, { batches: 2 }), [[["a", 2], ["b", 1]], [["a", 4], ["b", 2]]]);
});

test("keys of several columns are found again, and -0 is 0", () => {
  const steps = ({ wide }) => {
    wide.set({ a: "x", b: -0 }, "zero");
    wide.set({ a: null, b: 1 }, "null in a part");
    return [wide.get({ a: "x", b: 0 }), wide.get({ a: null, b: 1 }), wide.has({ a: "x", b: 1 }), [...wide.keys()].length];
  };
  assert.deepEqual(seen(steps), [["zero", "null in a part", false, 2]]);
});

test("state expires so long after it was written, and reading does not prolong it", () => {
  const query = new TestQuery(
    processor(
      ({ value, map }) => {
        const seen = `${value.get()?.n ?? "-"} ${map.get("k") ?? "-"}`;
        if (!value.exists()) {
          value.update({ n: 1 });
          map.set("k", 2);
        }
        return [{ seen }];
      },
      { ttlMs: 1000 },
    ),
    { timeMode: "processing-time" },
  );
  const at = (ms) => query.setTimeMs(ms).input("a", [{ n: 1 }]).runBatch()[0].seen;
  assert.deepEqual([at(0), at(999), at(1000), at(1999), at(2000)], ["- -", "1 2", "- -", "1 2", "- -"]);
});

test("tests look into the state of a key", () => {
  const query = new TestQuery(
    processor(({ value, list, map }) => {
      value.update({ n: 1 });
      list.put(["a", "b"]);
      map.set("k", 2);
    }),
  );
  query.input("a", [{ n: 1 }]).runBatch();
  assert.deepEqual(query.value("value", "a", "n BIGINT"), { n: 1 });
  assert.equal(query.value("value", "b", "n BIGINT"), undefined);
  assert.deepEqual(query.list("list", "a", "STRING"), ["a", "b"]);
  assert.deepEqual(query.map("map", "a", "STRING", "BIGINT"), [["k", 2]]);
});
