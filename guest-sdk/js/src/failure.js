// Why an export gave up, as the contract has it. Nothing else may be thrown out of an export: it would be a trap.

import { ApplyFault, ProcessorError, USER_CODE } from "./errors.js";
import { described } from "./codec/values.js";
import { authorsStack } from "./stack.js";

/** What the engine throws when there is no more. */
const OUT_OF_MEMORY = "out of memory";
/** What hosts call it. */
const GUEST_MEMORY = "GUEST_MEMORY";

/** The record `failure` for whatever was thrown while `group` was in hand. */
export function failureOf(thrown, group) {
  try {
    const of = thrown instanceof ApplyFault ? (thrown.group ?? group) : group;
    if (thrown instanceof ProcessorError) return { of, code: codeOf(thrown), message: String(thrown.message), stack: stackOf(thrown) };
    if (thrown instanceof Error) return { of, code: USER_CODE, message: `${thrown.name}: ${thrown.message}`, stack: stackOf(thrown) };
    if (thrown === OUT_OF_MEMORY) return { of, code: GUEST_MEMORY, message: "out of memory; raise limits.sandbox.memory_bytes, or keep less", stack: "" };
    return { of, code: USER_CODE, message: `${described(thrown)} was thrown, which is no Error and has no stack`, stack: "" };
  } catch {
    return { of: group, code: USER_CODE, message: "an error was thrown that fails itself when it is looked at", stack: "" };
  }
}

function codeOf({ code }) {
  return typeof code === "string" && code !== "" ? code : USER_CODE;
}

/** The stack, and those of the errors that caused it. */
function stackOf(error) {
  let stack = authorsStack(error);
  for (let { cause } = error, depth = 0; cause instanceof Error && depth < 8; { cause } = cause, depth += 1) {
    stack += `\ncaused by ${cause.name}: ${cause.message}\n${authorsStack(cause)}`;
  }
  return stack;
}
