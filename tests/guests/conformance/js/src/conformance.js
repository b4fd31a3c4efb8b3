// The programs of the recorded scenarios (tests/conformance/README.md), each as its original in Python, so that what
// they emit can be held against what Spark emitted, letter by letter. The parameter `program` picks one.

import { exportProcessor, ProcessorError } from "tidemill";

import { Crud } from "./programs/crud.js";
import { Dynamic } from "./programs/dynamic.js";
import { EventTime } from "./programs/event.js";
import { Evolution } from "./programs/evolution.js";
import { WithInitialState } from "./programs/initial.js";
import { Iterators } from "./programs/iterators.js";
import { Keys } from "./programs/keys.js";
import { Misuse } from "./programs/misuse.js";
import { Restart } from "./programs/restart.js";
import { ProcessingTime } from "./programs/timers.js";
import { Ttl } from "./programs/ttl.js";

const PROGRAMS = {
  crud: Crud,
  ttl: Ttl,
  timers: ProcessingTime,
  dynamic: Dynamic,
  event: EventTime,
  initial: WithInitialState,
  iterators: Iterators,
  keys: Keys,
  misuse: Misuse,
  evolution: Evolution,
  restart: Restart,
};

class Conformance {
  init(handle) {
    const name = handle.parameter("program") ?? "";
    const Program = PROGRAMS[name];
    if (Program === undefined) throw new ProcessorError("NO_SUCH_PROGRAM", name);
    this.program = new Program();
    this.program.init(handle);
  }

  handleInputRows(key, rows, timers) {
    return this.program.handleInputRows(key, rows, timers);
  }

  handleExpiredTimer(key, timers, expiryMs) {
    return this.program.handleExpiredTimer?.(key, timers, expiryMs);
  }

  handleInitialState(key, row, timers) {
    this.program.handleInitialState?.(key, row, timers);
  }

  close() {
    this.program.close?.();
  }
}

exportProcessor(Conformance, {
  key: "STRING",
  input: "op STRING, a STRING, b BIGINT, ts TIMESTAMP",
  initialState: "n BIGINT NOT NULL, timer BIGINT",
  output: "key STRING, ev STRING NOT NULL, out STRING",
  // Times in the far future are beyond 2^53.
  bigint: "bigint",
});
