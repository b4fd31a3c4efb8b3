// Counts rows per key, and keeps what it saw: a value, a list and a map per grouping key.

import { exportProcessor } from "tidemill";

export class Counter {
  init(handle) {
    this.count = handle.valueState("count", "BIGINT");
    this.seen = handle.listState("seen", "BIGINT");
    this.times = handle.mapState("times", "BIGINT", "BIGINT");
  }

  *handleInputRows(key, rows) {
    let count = this.count.get() ?? 0;
    for (const { n } of rows) {
      count += 1;
      this.seen.append(n);
      this.times.set(n, (this.times.get(n) ?? 0) + 1);
    }
    this.count.update(count);
    yield { key, count, listed: this.seen.get().length, distinct: [...this.times.keys()].length };
  }
}

exportProcessor(Counter, {
  key: "STRING NOT NULL",
  input: "n BIGINT NOT NULL",
  output: "key STRING NOT NULL, count BIGINT NOT NULL, listed BIGINT NOT NULL, distinct BIGINT NOT NULL",
});
