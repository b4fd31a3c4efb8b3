// Runs a processor in Node: the same handlers, the same bytes between them and the host, with state, timers and TTL in
// memory and time that the test sets. Types and documentation: `testing.d.ts`.

import { Buffer } from "./src/buffer.js";
import { codecOf } from "./src/codec/codec.js";
import { ProcessorError } from "./src/errors.js";
import { definitionOf } from "./src/export.js";
import { failureOf } from "./src/failure.js";
import { Instance } from "./src/instance.js";
import { setLogSink } from "./src/log.js";
import { printColumns } from "./src/ddl.js";
import { Host } from "./src/memory/host.js";
import { bytesOf, State, textOf } from "./src/memory/state.js";

const EXPIRY = codecOf("BIGINT", "bigint");
const ID = "00000000-0000-0000-0000-00000000000";

export class TestQuery {
  #definition;
  #options;
  #key;
  #input;
  #initialState;
  #time = { processingTimeMs: 0n, watermarkMs: 0n };
  #limits = { groupsPerChunk: 128, rowsPerChunk: 1024, rowsPerPage: 1024 };
  #batchId = 0;
  #state = new State();
  #inputRows = new Map();
  #initialRows = new Map();
  #log = [];

  constructor(Processor, options = {}) {
    this.#definition = definitionOf(Processor);
    const { timeMode = "none", outputMode = "append", parameters = {} } = options;
    this.#options = { timeMode, outputMode, parameters };
    this.#key = this.#codec(options.key, this.#definition.key, "key");
    this.#input = this.#codec(options.input, this.#definition.input, "input");
    this.#initialState = this.#definition.initialState ?? this.#codec(options.initialState);
  }

  smallChunks(groups, rows) {
    this.#limits = { groupsPerChunk: Math.max(1, groups), rowsPerChunk: Math.max(1, rows), rowsPerPage: Math.max(1, rows) };
    return this;
  }

  setTimeMs(ms) {
    this.#time.processingTimeMs = BigInt(ms);
    return this;
  }

  setWatermarkMs(ms) {
    this.#time.watermarkMs = BigInt(ms);
    return this;
  }

  input(key, rows) {
    add(this.#inputRows, this.#packedKey(key), rows.map((row) => packed(this.#input.write, row)));
    return this;
  }

  initialState(key, rows) {
    add(this.#initialRows, this.#packedKey(key), rows.map((row) => packed(this.#initialState.write, row)));
    return this;
  }

  runBatch() {
    const { timeMode } = this.#options;
    const input = taken(this.#inputRows);
    return this.#run(undefined, (instance, host, state) => {
      phase(host, "input", input, () => instance.handleInputRows(this.#time));
      if (timeMode === "none") return;
      const due = state.dueTimers(timeMode === "event-time" ? this.#time.watermarkMs : this.#time.processingTimeMs);
      const groups = due.map(([key, expiries]) => [key, expiries.map((expiry) => packed(EXPIRY.write, expiry))]);
      phase(host, "timer", groups, () => instance.handleExpiredTimer(this.#time));
    });
  }

  runInitialState() {
    const rows = taken(this.#initialRows);
    this.#run(printColumns(this.#initialState.schema.columns), (instance, host) => {
      phase(host, "initial-state", rows, () => instance.handleInitialState(this.#time));
    });
  }

  plan() {
    const host = this.#host(this.#state.copy());
    const instance = new Instance(this.#definition);
    return guarded(instance, () => instance.init(host, this.#query(undefined)));
  }

  value(name, key, schema) {
    const row = this.#state.value(name, this.#packedKey(key), this.#time.processingTimeMs);
    return row === undefined ? undefined : this.#read(schema, row);
  }

  list(name, key, schema) {
    return this.#state.list(name, this.#packedKey(key), this.#time.processingTimeMs).map((row) => this.#read(schema, row));
  }

  map(name, key, keySchema, valueSchema) {
    const entries = this.#state.map(name, this.#packedKey(key), this.#time.processingTimeMs);
    return entries.map(([entry, value]) => [this.#read(keySchema, entry), this.#read(valueSchema, value)]);
  }

  timers(key) {
    return this.#state.timersOf(this.#packedKey(key)).map((expiry) => (this.#definition.bigint === "bigint" ? expiry : Number(expiry)));
  }

  takeLog() {
    return this.#log.splice(0);
  }

  /** Runs a batch on a fresh instance. One that fails has no effect. */
  #run(initialState, phases) {
    const state = this.#state.copy();
    const host = this.#host(state);
    const instance = new Instance(this.#definition);
    this.#batchId += 1;
    setLogSink((level, message) => this.#log.push({ level, message }));
    guarded(instance, () => {
      instance.init(host, this.#query(initialState));
      phases(instance, host, state);
      host.open("close", []);
      instance.close();
    });
    this.#state = state;
    const { read } = this.#definition.output;
    return host.output.map((row) => read(new Buffer(bytesOf(row)), 0));
  }

  #host(state) {
    return new Host(state, this.#options.timeMode, this.#time.processingTimeMs, this.#limits);
  }

  #query(initialState) {
    const { timeMode, outputMode, parameters } = this.#options;
    return {
      queryId: `${ID}0`,
      runId: `${ID}1`,
      batchId: this.#batchId,
      timeMode,
      outputMode,
      key: printColumns(this.#key.schema.columns),
      input: printColumns(this.#input.schema.columns),
      initialState,
      parameters: new Map(Object.entries(parameters).sort()),
    };
  }

  #codec(schema, wanted, what) {
    if (wanted !== undefined) return wanted;
    if (schema !== undefined) return codecOf(schema, this.#definition.bigint);
    if (what === undefined) return undefined;
    throw new ProcessorError("INVALID_PROCESSOR", `the processor is exported without \`${what}\`, so a TestQuery needs it: new TestQuery(..., { ${what}: "..." })`);
  }

  #packedKey(key) {
    return packed(this.#key.writeKey, key);
  }

  #read(schema, row) {
    return codecOf(schema, this.#definition.bigint).stored.read(new Buffer(bytesOf(row)), 0);
  }
}

function phase(host, name, groups, call) {
  if (groups.length === 0) return;
  host.open(name, groups);
  call();
}

/** Throws what a host would show: the failure's code and message, with the error of the processor as its cause. */
function guarded(instance, call) {
  try {
    return call();
  } catch (thrown) {
    const { code, message } = failureOf(thrown, instance.group);
    throw new ProcessorError(code, message, { cause: thrown });
  }
}

function packed(write, row) {
  const buffer = Buffer.ofCapacity(256);
  return textOf(buffer.u8.subarray(0, write(buffer, 0, row) << 2));
}

function add(groups, key, rows) {
  if (rows.length > 0) groups.set(key, [...(groups.get(key) ?? []), ...rows]);
}

/** The groups in the order of their keys' bytes; they are gone then. */
function taken(groups) {
  const sorted = [...groups].sort(([left], [right]) => (left < right ? -1 : 1));
  groups.clear();
  return sorted;
}
