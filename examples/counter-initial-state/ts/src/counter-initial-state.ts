// Counts rows per key, and begins where an earlier system stopped.

import { exportProcessor, type Handle, type ValueState } from "tidemill";

interface Input {
  value: string;
}

/** A row of the initial state; its key column is the query's. */
interface Start {
  count: number;
}

interface Count {
  id: string;
  count: number;
}

export class Counter {
  #count!: ValueState<number>;

  init(handle: Handle): void {
    this.#count = handle.valueState("count", "BIGINT");
  }

  *handleInputRows(id: string, rows: Iterable<Input>): Iterable<Count> {
    let count = this.#count.get() ?? 0;
    for (const { value } of rows) {
      // An empty value is a sign of life, not a count.
      if (value !== "") count += 1;
    }
    this.#count.update(count);
    yield { id, count };
  }

  handleInitialState(_id: string, { count }: Start): void {
    this.#count.update(count);
  }
}

exportProcessor(Counter, {
  key: "STRING NOT NULL",
  input: "value STRING NOT NULL",
  initialState: "count BIGINT NOT NULL",
  output: "id STRING NOT NULL, count BIGINT NOT NULL",
});
