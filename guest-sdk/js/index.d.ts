// The SDK for authors of processors. `README.md` tells the rest.

/** What a BIGINT and a time in milliseconds are: `number`, exact up to 2^53, or `bigint`. */
export type Int64 = number | bigint;

/** When timers and TTL move. */
export type TimeMode = "none" | "processing-time" | "event-time";

/** What emitted rows mean to a sink with keys. */
export type OutputMode = "append" | "update";

/** What a handler answers: rows to emit. Generators are iterables. */
export type Rows<Output> = Iterable<Output> | void | null;

/**
 * A stateful processor: handlers that the host calls per grouping key, in every batch on a fresh instance.
 *
 * What must outlive a batch belongs into state variables, not into fields. An error that leaves a handler fails the
 * batch, which then has had no effect. Handlers are not async.
 */
export interface StatefulProcessor<Key = any, Input = any, Output = any, InitialState = any, Ms extends Int64 = number> {
  /**
   * Makes the state variables. There is no grouping key yet, so state cannot be read or written. Which variables are made
   * may depend on the query's settings, not on run id, batch id or time.
   */
  init?(handle: Handle): void;
  /**
   * Handles the rows of one grouping key in this batch. Rows that are left unread are skipped. `rows` is an array where
   * all of them lie in one chunk (128 KiB); of more, they are pulled as they are read, once.
   */
  handleInputRows(key: Key, rows: Iterable<Input>, timers: Timers<Ms>): Rows<Output>;
  /** Handles one timer, after all input of the batch. It is deleted unless it is registered again here. */
  handleExpiredTimer?(key: Key, timers: Timers<Ms>, expiryMs: Ms): Rows<Output>;
  /** Handles one row of the initial state, before any input of the query. Emits nothing. */
  handleInitialState?(key: Key, row: InitialState, timers: Timers<Ms>): void;
  /** The last call of a batch, before it is committed. Changes and emits nothing. */
  close?(): void;
}

/** The schemas of a processor's rows, in DDL: `user STRING NOT NULL, n BIGINT`. A single type stands for the value itself. */
export interface ProcessorOptions {
  /** Columns of the rows that are emitted; a single type is a column `value`. */
  output: string;
  /** The grouping key as wanted; by default as it is, an object of its columns. A single type is the first column's value. */
  key?: string;
  /** The columns of the input that are wanted; others are not even read. By default all. */
  input?: string;
  /** The same for rows of the initial state. */
  initialState?: string;
  /**
   * What a BIGINT is read as; times in milliseconds too. "number" (default): one beyond 2^53 is an error,
   * `NUMERIC_VALUE_OUT_OF_RANGE`. Written are both, where exact.
   */
  bigint?: "number" | "bigint";
}

/** Makes a class the processor of its component. The module ends with it. */
export function exportProcessor(
  Processor: new () => StatefulProcessor<any, any, any, any, any>,
  options: ProcessorOptions,
): void;

/** What `init` is given: the query's settings, and the making of state variables. */
export interface Handle {
  /** One value per grouping key. */
  valueState<Value>(name: string, schema: string, options?: StateOptions): ValueState<Value>;
  /** A list per grouping key. */
  listState<Element>(name: string, schema: string, options?: StateOptions): ListState<Element>;
  /** A map per grouping key. */
  mapState<Key, Value>(name: string, keySchema: string, valueSchema: string, options?: StateOptions): MapState<Key, Value>;
  /** Drops a variable that an earlier version of the processor made, for all grouping keys. No effect if there is none. */
  deleteIfExists(name: string): void;
  /** A setting of the query; undefined if there is none of that name. */
  parameter(name: string): string | undefined;
  readonly query: Query;
}

export interface StateOptions {
  /** What is written expires so many milliseconds later, in time mode processing-time. 0 and undefined: never. */
  ttlMs?: number | undefined;
}

/** What is known of the query. Schemas are in DDL. */
export interface Query {
  /** The same over restarts. */
  readonly queryId: string;
  /** Of this start of the query. */
  readonly runId: string;
  readonly batchId: number;
  readonly timeMode: TimeMode;
  readonly outputMode: OutputMode;
  readonly key: string;
  readonly input: string;
  readonly initialState: string | undefined;
  /** Settings of the query, and those of the host, whose names begin with `tidemill.`. */
  readonly parameters: ReadonlyMap<string, string>;
}

/** One value per grouping key. In a handler it means the key in hand. */
export interface ValueState<Value> {
  /** The value; undefined if there is none, or it has expired. */
  get(): Value | undefined;
  exists(): boolean;
  /** Replaces the value, and starts its TTL anew. */
  update(value: Value): void;
  clear(): void;
}

/** A list per grouping key, in order of insertion. Each element has a TTL of its own. */
export interface ListState<Element> extends Iterable<Element> {
  /** All elements. A loop over the list itself reads it page by page, as it was when the loop began. */
  get(): Element[];
  exists(): boolean;
  /** Replaces the list. An empty one is refused: that is `clear`. */
  put(elements: readonly Element[]): void;
  append(element: Element): void;
  /** Adds elements at the end. An empty array is refused. */
  appendAll(elements: readonly Element[]): void;
  clear(): void;
}

/**
 * A map per grouping key. Two keys are the same if their packed rows are. Each entry has a TTL of its own. Entries are
 * read page by page, as they were when the read began, in an order of their own that is always the same.
 */
export interface MapState<Key, Value> extends Iterable<[Key, Value]> {
  /** The value at `key`; undefined if there is none. */
  get(key: Key): Value | undefined;
  has(key: Key): boolean;
  /** Whether there is an entry. */
  exists(): boolean;
  /** Sets the value at `key`, and starts the entry's TTL anew. */
  set(key: Key, value: Value): this;
  /** Removes the entry at `key`, if there is one. */
  delete(key: Key): void;
  clear(): void;
  keys(): IterableIterator<Key>;
  values(): IterableIterator<Value>;
  entries(): IterableIterator<[Key, Value]>;
}

/**
 * Timers of the grouping key in hand, and the only clock there is. Times are milliseconds since 1970-01-01, UTC.
 *
 * A timer is known by its expiry and fires once, in the first batch whose time (processing time or watermark, by the
 * query's time mode) is not before it. One registered in the past fires in this batch, or in the next if it was
 * registered by a timer's handler.
 */
export interface Timers<Ms extends Int64 = number> {
  /** The time of the batch. */
  readonly processingTimeMs: Ms;
  /** The watermark; 0 until there is one. */
  readonly watermarkMs: Ms;
  /** Registers a timer; no effect if there is one. */
  register(expiryMs: Int64): void;
  /** Deletes a timer; no effect if there is none. If it is due in this batch, it does not fire. */
  delete(expiryMs: Int64): void;
  /** The timers, earliest first, as they are now; the one that fires is among them. */
  list(): Ms[];
}

/** An error with a stable code: a misuse that the SDK or the host found, or one of the author's own. */
export class ProcessorError extends Error {
  /** @param code in SCREAMING_SNAKE_CASE, for users to match on */
  constructor(code: string, message: string, options?: { cause?: unknown });
  readonly name: "ProcessorError";
  readonly code: string;
}

/** Messages to the log of the host: texts as they are, the rest as JSON. Bounded per batch. */
export const log: {
  trace(...parts: unknown[]): void;
  debug(...parts: unknown[]): void;
  info(...parts: unknown[]): void;
  warn(...parts: unknown[]): void;
  error(...parts: unknown[]): void;
};

/** A point in time: a TIMESTAMP column. Compare by `<` and `>`; for equality compare `micros`. */
export class Timestamp {
  /** @param micros microseconds since 1970-01-01T00:00:00Z */
  constructor(micros: bigint);
  /** The point in time so many milliseconds after the epoch, as timers and watermarks count. */
  static fromMs(ms: Int64): Timestamp;
  /** Reads `2013-01-31T05:06:07.5Z`. */
  static parse(text: string): Timestamp;
  readonly micros: bigint;
  /** Milliseconds since the epoch, rounded down. */
  readonly ms: number;
  toDate(): Date;
  valueOf(): bigint;
  toString(): string;
  toJSON(): string;
}

/** A calendar day: a DATE column. Compare by `<` and `>`; for equality compare `days`. */
export class PlainDate {
  /** @param days days since 1970-01-01 */
  constructor(days: number);
  /** Reads `2024-02-29`. */
  static parse(text: string): PlainDate;
  readonly days: number;
  valueOf(): number;
  toString(): string;
  toJSON(): string;
}

/** A decimal number, `unscaled / 10^scale`: a DECIMAL(p, s) column. Arithmetic is that of `unscaled`. */
export class Decimal {
  constructor(unscaled: bigint, scale?: number);
  /** Reads `-12.50`; as many digits after the point as there are become the scale. */
  static parse(text: string): Decimal;
  readonly unscaled: bigint;
  readonly scale: number;
  /** The same number with so many digits after the point; an error if some would be lost. */
  rescale(scale: number): Decimal;
  /** The nearest number. */
  toNumber(): number;
  toString(): string;
  toJSON(): string;
}
