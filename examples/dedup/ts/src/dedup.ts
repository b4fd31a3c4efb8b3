// Lets each event through once, and forgets it after an hour.

import { exportProcessor, type Handle, type ValueState } from "tidemill";

const REMEMBERED_MS = 60 * 60 * 1000;

interface Event {
  id: string;
  body: string | null;
}

export class Dedup {
  #seen!: ValueState<boolean>;

  init(handle: Handle): void {
    this.#seen = handle.valueState("seen", "BOOLEAN", { ttlMs: REMEMBERED_MS });
  }

  *handleInputRows(_id: string, rows: Iterable<Event>): Iterable<Event> {
    // Repeats do not prolong the hour.
    if (this.#seen.exists()) return;
    for (const first of rows) {
      this.#seen.update(true);
      yield first;
      return;
    }
  }
}

exportProcessor(Dedup, {
  key: "STRING NOT NULL",
  input: "id STRING NOT NULL, body STRING",
  output: "id STRING NOT NULL, body STRING",
});
