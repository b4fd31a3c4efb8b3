// Runs a processor in Node: the same handlers, the same bytes between them and the host, with state, timers and TTL in
// memory and time that the test sets.
//
// What is the host's is not here: late rows are not dropped, NULLs in columns that have none are errors and not bad rows,
// and the watermark is what the test says. `tidemill test` runs the component with all of that.

import type { Int64, OutputMode, StatefulProcessor, TimeMode } from "./index.js";

export interface TestQueryOptions {
  /** Default: "none". */
  timeMode?: TimeMode;
  /** Default: "append". */
  outputMode?: OutputMode;
  /** The query's settings. */
  parameters?: Record<string, string>;
  /** The schema of the grouping key, where the processor is exported without one. */
  key?: string;
  /** The schema of the input, where the processor is exported without one. */
  input?: string;
  /** The schema of the initial state, where the processor is exported without one. */
  initialState?: string;
}

/** A message that a processor logged. */
export interface LogMessage {
  level: "trace" | "debug" | "info" | "warn" | "error";
  message: string;
}

/** What `init` answered, schemas in DDL. */
export interface Plan {
  output: string;
  columns: string | undefined;
  initialState: string | undefined;
  key: string | undefined;
}

/** A query that runs an exported processor batch by batch, on a fresh instance each time, as a host does. */
export class TestQuery<Key = any, Input = any, Output = any, InitialState = any, Ms extends Int64 = number> {
  /** A query without state, at time 0 and without a watermark. */
  constructor(Processor: new () => StatefulProcessor<Key, Input, Output, InitialState, Ms>, options?: TestQueryOptions);
  /** Makes chunks and pages of at most `rows` rows and `groups` keys, so that a few rows cross their borders. */
  smallChunks(groups: number, rows: number): this;
  /** Sets the processing time of the batches to come, milliseconds since the epoch. */
  setTimeMs(ms: Int64): this;
  /** Sets the watermark of the batches to come, milliseconds since the epoch. */
  setWatermarkMs(ms: Int64): this;
  /** Adds rows of a key to the next batch. */
  input(key: Key, rows: readonly Input[]): this;
  /**
   * Runs a batch: the input that was added, then timers that are due. Answers what was emitted. A batch that fails throws
   * a ProcessorError with the failure's code and has no effect; its input is gone.
   */
  runBatch(): Output[];
  /** Adds rows of a key to the initial state. */
  initialState(key: Key, rows: readonly InitialState[]): this;
  /** Runs a bootstrap batch over the initial state that was added. Timers that it registers fire in a later batch. */
  runInitialState(): void;
  /** Makes an instance, and answers its plan. */
  plan(): Plan;
  /** The value that a key has in the value state `name`. */
  value<Value>(name: string, key: Key, schema: string): Value | undefined;
  /** The elements that a key has in the list state `name`. */
  list<Element>(name: string, key: Key, schema: string): Element[];
  /** The entries that a key has in the map state `name`, in the order in which a processor reads them. */
  map<EntryKey, Value>(name: string, key: Key, keySchema: string, valueSchema: string): [EntryKey, Value][];
  /** The timers that a key has, earliest first. */
  timers(key: Key): Ms[];
  /** What the processor has logged since the last call. */
  takeLog(): LogMessage[];
}
