// A fault of the host in the middle of a call.

import assert from "node:assert/strict";
import test from "node:test";

import { exportProcessor } from "../index.js";
import { ApplyFault } from "../src/errors.js";
import { definitionOf } from "../src/export.js";
import { failureOf } from "../src/failure.js";
import { Instance } from "../src/instance.js";
import { Groups } from "../src/memory/chunks.js";
import { Host } from "../src/memory/host.js";
import { State, textOf } from "../src/memory/state.js";
import { codecOf } from "../src/codec/codec.js";
import { Buffer } from "../src/buffer.js";

const QUERY = { timeMode: "none", key: "key STRING", input: "n BIGINT", parameters: new Map() };
const TIME = { processingTimeMs: 0n, watermarkMs: 0n };
const LIMITS = { groupsPerChunk: 8, rowsPerChunk: 8, rowsPerPage: 8 };

function packed(ddl, row) {
  const buffer = Buffer.ofCapacity(64);
  return textOf(buffer.u8.subarray(0, codecOf(ddl, "number").write(buffer, 0, row) << 2));
}

/** The failure of a call over the keys a and b, in which the host refuses the first op of every `apply`. */
function failureOfCall(handleInputRows) {
  class Processor {
    init(handle) {
      this.list = handle.listState("list", "BIGINT");
    }
  }
  Processor.prototype.handleInputRows = handleInputRows;
  exportProcessor(Processor, { key: "STRING", input: "n BIGINT", output: "n BIGINT" });
  const host = new Host(new State(), "none", 0n, LIMITS);
  host.apply = () => {
    throw new ApplyFault(0, "REFUSED", "on purpose");
  };
  const instance = new Instance(definitionOf(Processor));
  instance.init(host, QUERY);
  host.open("input", ["a", "b"].map((key) => [packed("STRING", key), [packed("n BIGINT", { n: 1 })]]));
  try {
    instance.handleInputRows(TIME);
  } catch (thrown) {
    const { of, code } = failureOf(thrown, instance.group);
    return { of, code };
  }
  return assert.fail("the call did not fail");
}

test("a fault names the group of its op, not the one in hand", () => {
  const failure = failureOfCall(function (key) {
    if (key === "a") this.list.append(1);
    return [];
  });
  assert.deepEqual(failure, { of: 1, code: "REFUSED" });
});

test("a fault that the author catches fails the call all the same", () => {
  let caught;
  const failure = failureOfCall(function () {
    this.list.append(1);
    try {
      this.list.get();
    } catch (error) {
      caught = error.code;
    }
  });
  assert.deepEqual([caught, failure], ["REFUSED", { of: 1, code: "REFUSED" }]);
});

test("a host that announces more rows than it sends has broken the contract", () => {
  class Reader {
    handleInputRows(key, rows) {
      return [...rows];
    }
  }
  exportProcessor(Reader, { key: "STRING", input: "n BIGINT", output: "n BIGINT" });
  const groups = new Groups([[packed("STRING", "a"), Array(3).fill(packed("n BIGINT", { n: 1 }))]]);
  const first = groups.nextChunk({ groupsPerChunk: 1, rowsPerChunk: 1 }, [], () => undefined);
  const chunks = [first];
  const instance = new Instance(definitionOf(Reader));
  instance.init({ next: () => chunks.shift(), apply() {} }, QUERY);
  assert.throws(() => instance.handleInputRows(TIME), { code: "CONTRACT_BROKEN" });
});
