// Makes, while a component is built, the code that each instance would otherwise make anew: an instance lives for one batch,
// and generating the functions of a schema takes a millisecond.
//
// The schemas of `exportProcessor` are known; those of state variables show when `init` runs, so it is rehearsed, without a
// host.

import { printColumns } from "./ddl.js";
import { ProcessorError } from "./errors.js";
import { Instance } from "./instance.js";

/** Makes the code of all schemas that are known before a query is. */
export function prepare(definition) {
  const { output, key, input, initialState } = definition;
  for (const made of [output.emit, key?.read, input?.readAll, initialState?.readAll]) void made;
  withoutRandom(() => {
    try {
      new Instance(definition).init(rehearsal(), {
        queryId: "",
        runId: "",
        batchId: 0,
        timeMode: "processing-time",
        outputMode: "append",
        key: columnsOf(key),
        input: columnsOf(input),
        initialState: initialState && columnsOf(initialState),
        parameters: new Map(),
      });
    } catch {
      // An `init` that needs a setting of the query fails here; the rest of its code is made when it has it.
    }
  });
}

function columnsOf(codec) {
  return codec === undefined ? "" : printColumns(codec.schema.columns);
}

/** A host that gives out variables, and nothing else. */
function rehearsal() {
  let variables = 0;
  const declare = () => variables++;
  return { valueState: declare, listState: declare, mapState: declare, deleteIfExists() {} };
}

/** Randomness is the host's: to draw while there is none would fail the build. */
function withoutRandom(call) {
  const drawers = [[Math, "random"], [globalThis.crypto, "getRandomValues"], [globalThis.crypto, "randomUUID"]].filter(([owner]) => owner !== undefined);
  const before = drawers.map(([owner, name]) => Object.getOwnPropertyDescriptor(owner, name));
  const value = () => {
    throw new ProcessorError("NO_RANDOM", "there is no randomness while a component is built");
  };
  for (const [owner, name] of drawers) Object.defineProperty(owner, name, { value, configurable: true });
  try {
    call();
  } finally {
    drawers.forEach(([owner, name], at) => {
      if (before[at] === undefined) delete owner[name];
      else Object.defineProperty(owner, name, before[at]);
    });
  }
}
