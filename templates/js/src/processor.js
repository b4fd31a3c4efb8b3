// Counts the visits of a user, and tells when the user has left: after half an hour without one.

import { exportProcessor, log } from "tidemill";

/** Without a visit for so long, a user has left. */
export const QUIET_MS = 30 * 60 * 1000;

export class Counter {
  init(handle) {
    this.visits = handle.valueState("visits", "BIGINT");
  }

  *handleInputRows(user, rows, timers) {
    let visits = this.visits.get() ?? 0;
    for (const { page } of rows) {
      log.debug(`${user} visits ${page}`);
      visits += 1;
    }
    this.visits.update(visits);

    for (const expiryMs of timers.list()) timers.delete(expiryMs);
    timers.register(timers.processingTimeMs + QUIET_MS);
    yield { user, visits, here: true };
  }

  *handleExpiredTimer(user) {
    const visits = this.visits.get() ?? 0;
    this.visits.clear();
    yield { user, visits, here: false };
  }
}

// Of the input only these columns are read.
exportProcessor(Counter, {
  key: "STRING NOT NULL",
  input: "page STRING NOT NULL",
  output: "user STRING NOT NULL, visits BIGINT NOT NULL, here BOOLEAN NOT NULL",
});
