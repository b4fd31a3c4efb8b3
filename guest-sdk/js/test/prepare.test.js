// What is made while a component is built.

import assert from "node:assert/strict";
import test from "node:test";

import { exportProcessor } from "../index.js";
import { codecOf } from "../src/codec/codec.js";
import { definitionOf } from "../src/export.js";
import { prepare } from "../src/prepare.js";

const OPTIONS = { key: "STRING", input: "prepared BIGINT", output: "prepared STRING" };
const isMade = (ddl, name) => Object.hasOwn(codecOf(ddl, "number"), name);

function prepared(init) {
  class Processor {
    init(handle) {
      init(handle);
    }
    handleInputRows() {}
  }
  exportProcessor(Processor, OPTIONS);
  prepare(definitionOf(Processor));
}

test("the code of state schemas is made by a rehearsal of init, which may fail", () => {
  prepared((handle) => {
    handle.valueState("a", "rehearsed INT");
    if (handle.parameter("limit") === undefined) throw new Error("no limit");
    handle.valueState("b", "unreached INT");
  });
  assert.ok(isMade("rehearsed INT", "putValue"));
  assert.ok(!isMade("unreached INT", "putValue"));
  assert.ok(isMade(OPTIONS.output, "emit"));
  assert.ok(isMade(OPTIONS.input, "readAll"));
});

test("there is no randomness in a rehearsal, and there is after it", () => {
  const drawn = [];
  for (const draw of [() => Math.random(), () => crypto.randomUUID(), () => crypto.getRandomValues(new Uint8Array(1))]) {
    prepared(() => drawn.push(draw()));
  }
  assert.deepEqual(drawn, []);
  assert.equal(typeof Math.random(), "number");
  assert.equal(crypto.randomUUID().length, 36);
});
