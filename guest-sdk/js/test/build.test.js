// What the build does around componentize-js: the mended glue, the table of lines, stacks, failures.

import assert from "node:assert/strict";
import test from "node:test";

import { mended } from "../build/glue.mjs";
import { linesOf, withoutMap } from "../build/lines.mjs";
import { ProcessorError } from "../index.js";
import { ApplyFault } from "../src/errors.js";
import { failureOf } from "../src/failure.js";
import { authorsStack } from "../src/stack.js";

const GLUE = `function put(arg0, arg1) {
  var ptr0 = $realloc(0, 0, 1, len0);
  _debugLog('[Instruction::CallWasm] enter', {
    funcName: 'put',
    async: false,
  });
  let ret;
  ret = $import_state$put(toUint32(arg0), ptr0, len0, ptr1, len1);
  $dealloc(ret);
  $import_logging$log(enum0, ptr2, len2);
}
`;

test("the glue gives back each list as soon as its call returned, and logs nothing", () => {
  assert.equal(mended(GLUE), `function put(arg0, arg1) {
  var ptr0 = $realloc(0, 0, 1, len0);
  let ret;
  ret = $import_state$put(toUint32(arg0), ptr0, len0, ptr1, len1);
  if (len0 !== 0) $dealloc(ptr0, len0, 1);
  if (len1 !== 0) $dealloc(ptr1, len1, 1);
  $dealloc(ret);
  $import_logging$log(enum0, ptr2, len2);
  if (len2 !== 0) $dealloc(ptr2, len2, 1);
}
`);
});

test("glue of another shape is left alone", () => {
  assert.equal(mended("function put() { return call(0); }\n"), undefined);
  assert.equal(mended(GLUE.replace("$dealloc(ret)", "free(ret)")), undefined);
});

test("a source map gives the first place of each line", () => {
  assert.deepEqual(linesOf("AAAA,IAAI;;AACA;ACDA,CAAC"), [[0, 1], 0, [0, 2], [1, 1]]);
});

test("the inline source map is taken off a bundle", () => {
  const map = Buffer.from('{"mappings":""}').toString("base64");
  assert.deepEqual(withoutMap(`code;\n//# sourceMappingURL=data:application/json;base64,${map}\n`), { code: "code;", map: { mappings: "" } });
  assert.deepEqual(withoutMap("code;\n"), { code: "code;\n", map: undefined });
});

const TABLE = { file: "bundle.js", sources: ["tidemill/src/session.js", "src/counter.ts"], lines: [0, [0, 10], [1, 20]] };

test("a stack has the author's frames with their lines, and the SDK's where there are no others", () => {
  const stack = "count@bundle.js:3:5\nwalk@bundle.js:2:7\nglue@/tmp/initializer.js:9:1\n";
  assert.equal(authorsStack({ stack }, TABLE), "    at count (src/counter.ts:20)");
  assert.equal(authorsStack({ stack: "@bundle.js:2:7\nwalk@bundle.js:99:1\n" }, TABLE), "    at (tidemill/src/session.js:10)");
  assert.equal(authorsStack({}, TABLE), "");
});

test("whatever is thrown becomes a failure", () => {
  const of = (thrown) => {
    const { stack, ...failure } = failureOf(thrown, 7);
    assert.equal(typeof stack, "string");
    return failure;
  };
  assert.deepEqual(of(new TypeError("no")), { of: 7, code: "USER_CODE", message: "TypeError: no" });
  assert.deepEqual(of(new ProcessorError("OVERDRAWN", "no")), { of: 7, code: "OVERDRAWN", message: "no" });
  assert.deepEqual(of(new ProcessorError("", "no")), { of: 7, code: "USER_CODE", message: "no" });
  assert.deepEqual(of(Object.assign(new ApplyFault(1, "CODE", "no"), { group: 3 })), { of: 3, code: "CODE", message: "no" });
  assert.equal(of("out of memory").code, "GUEST_MEMORY");
  for (const thrown of [undefined, null, 5, {}, Symbol("s"), () => {}]) assert.equal(of(thrown).code, "USER_CODE");
  const hostile = Object.defineProperty(new Error("x"), "message", { get() { throw new Error("again"); } });
  assert.equal(of(hostile).code, "USER_CODE");
});

test("the errors that caused one stand in its stack", () => {
  const { stack } = failureOf(new Error("outer", { cause: new Error("inner") }), 1);
  assert.match(stack, /caused by Error: inner\n/);
});
