// One instance of a processor: the phases of a batch, as the host calls them.

import { codecOf } from "./codec/codec.js";
import { described } from "./codec/values.js";
import { parseSchema, printColumns } from "./ddl.js";
import { INITIAL_STATE_NOT_HANDLED, INVALID_OUTPUT, ProcessorError } from "./errors.js";
import { wantedColumns } from "./export.js";
import { Handle } from "./handle.js";
import { APPLY_AT_WORDS } from "./ops.js";
import { NO_GROUP, Session } from "./session.js";
import { Timers } from "./timers.js";

const EXPIRY = codecOf("BIGINT NOT NULL", "bigint");

export class Instance {
  #definition;
  #processor;
  #session;
  #key;
  #input;
  #initialState;

  constructor(definition) {
    this.#definition = definition;
  }

  /** The group whose handler runs, for a failure. */
  get group() {
    const group = this.#session?.group ?? NO_GROUP;
    return group === NO_GROUP ? undefined : group;
  }

  /** Makes the processor and its state variables; answers the plan. */
  init(host, query) {
    const { Processor, bigint, output, key, input, initialState } = this.#definition;
    this.#session = new Session(host, query.timeMode, bigint);
    this.#processor = new Processor();
    if (query.initialState !== undefined && typeof this.#processor.handleInitialState !== "function") {
      throw new ProcessorError(
        INITIAL_STATE_NOT_HANDLED,
        `the query has an initial state, but the class ${Processor.name} takes none: it has no method handleInitialState`,
      );
    }
    this.#key = key ?? codecOf(query.key, bigint);
    this.#input = input ?? codecOf(query.input, bigint);
    if (query.initialState !== undefined) this.#initialState = initialState ?? codecOf(query.initialState, bigint);
    const plan = {
      output: printColumns(output.schema.columns),
      columns: input && wantedColumns(input, parseSchema(query.input), "input"),
      initialState: initialState && query.initialState && wantedColumns(initialState, parseSchema(query.initialState), "initial state"),
      key: key && wantedColumns(key, parseSchema(query.key), "grouping key"),
      // The host knows best which values are worth sending along.
      prefetch: undefined,
    };
    if (typeof this.#processor.init === "function") nothing(this.#processor.init(new Handle(this.#session, query)), "init");
    return plan;
  }

  handleInitialState(time) {
    const processor = this.#processor;
    const timers = new Timers(this.#session, time);
    this.#session.walk(this.#key.read, this.#initialState.readAll, (key, rows) => {
      for (const row of rows) nothing(processor.handleInitialState(key, row, timers), "handleInitialState");
    });
  }

  handleInputRows(time) {
    const processor = this.#processor;
    const session = this.#session;
    const timers = new Timers(session, time);
    const { emit } = this.#definition.output;
    session.walk(this.#key.read, this.#input.readAll, (key, rows) => {
      emitAll(processor.handleInputRows(key, rows, timers), session, emit, "handleInputRows");
    });
  }

  handleExpiredTimer(time) {
    const processor = this.#processor;
    const session = this.#session;
    const timers = new Timers(session, time);
    const { emit } = this.#definition.output;
    const handles = typeof processor.handleExpiredTimer === "function";
    session.walk(this.#key.read, EXPIRY.readAll, (key, expiries) => {
      timers.beginGroup();
      for (const expiry of expiries) {
        if (!handles || !timers.beginFiring(expiry)) continue;
        emitAll(processor.handleExpiredTimer(key, timers, session.time(expiry)), session, emit, "handleExpiredTimer");
        timers.endFiring();
      }
    });
  }

  close() {
    if (typeof this.#processor.close === "function") nothing(this.#processor.close(), "close");
  }
}

/** Emits what a handler answered: an array of rows, an iterable, or nothing. */
function emitAll(rows, session, emit, handler) {
  if (rows === undefined) return;
  const { ops, group } = session;
  if (Array.isArray(rows)) {
    for (let at = 0, count = rows.length; at < count; at += 1) {
      if (ops.end >= APPLY_AT_WORDS) session.apply();
      emit(ops, group, rows[at]);
    }
  } else if (typeof rows === "object" && typeof rows?.[Symbol.iterator] === "function") {
    emitEach(rows[Symbol.iterator](), session, emit);
  } else if (rows !== null) {
    throw new ProcessorError(INVALID_OUTPUT, `${handler} answers an array of rows, an iterable of them (such as a generator) or nothing, not ${answered(rows)}`);
  }
}

function emitEach(iterator, session, emit) {
  for (;;) {
    const { done, value } = iterator.next();
    if (done) return;
    try {
      if (session.ops.end >= APPLY_AT_WORDS) session.apply();
      emit(session.ops, session.group, value);
    } catch (error) {
      // So that its `finally` runs, as in a `for` loop.
      iterator.return?.();
      throw error;
    }
  }
}

/** Refuses what a handler answered that answers nothing: an unread generator or promise has done nothing yet. */
function nothing(result, handler) {
  if (result !== undefined && result !== null && (typeof result.next === "function" || typeof result.then === "function")) {
    throw new ProcessorError(INVALID_OUTPUT, `${handler} emits no rows, so it must be an ordinary method; it answered ${answered(result)}`);
  }
}

function answered(result) {
  return typeof result?.then === "function" ? "a promise: handlers are not async" : described(result);
}
