// A processor that tries to get out of its sandbox, or to be different from run to run. ../../README.md says what it emits.

import { exportProcessor } from "tidemill";

import { clocks } from "./attempts/clocks.js";
import { order } from "./attempts/order.js";
import { outside } from "./attempts/outside.js";
import { randomness } from "./attempts/randomness.js";

const attempts = { ...clocks, ...randomness, ...order, ...outside };

/** Batches that this memory has seen. */
const batches = new Set();

class Escape {
  init({ query }) {
    this.batch = query.batchId;
  }

  *handleInputRows(key, rows, timers) {
    batches.add(this.batch);
    for (const _ of rows) {
      for (const [what, attempt] of Object.entries(attempts)) yield { key, what, result: resultOf(attempt) };
      yield { key, what: "time: of the handler", result: String(timers.processingTimeMs) };
      yield { key, what: "order: kept from an earlier batch", result: String(batches.size - 1) };
    }
  }
}

function resultOf(attempt) {
  try {
    return `got ${attempt()}`.slice(0, 200).toWellFormed();
  } catch (error) {
    return `refused: ${error?.name}: ${error?.message}`.toWellFormed();
  }
}

exportProcessor(Escape, {
  key: "STRING NOT NULL",
  input: "n BIGINT NOT NULL",
  output: "key STRING NOT NULL, what STRING NOT NULL, result STRING NOT NULL",
});
