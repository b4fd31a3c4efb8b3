// Counts per key and nothing else, so that a benchmark measures the way to the processor and back.

import { exportProcessor } from "tidemill";

class Counter {
  init(handle) {
    this.count = handle.valueState("count", "BIGINT");
  }

  handleInputRows(key, rows) {
    let count = this.count.get() ?? 0;
    if (Array.isArray(rows)) {
      for (let at = 0; at < rows.length; at += 1) count += rows[at].n;
    } else {
      for (const { n } of rows) count += n;
    }
    this.count.update(count);
    return [{ key, count }];
  }
}

exportProcessor(Counter, {
  key: "STRING NOT NULL",
  input: "n BIGINT NOT NULL",
  output: "key STRING NOT NULL, count BIGINT NOT NULL",
});
